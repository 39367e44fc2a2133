# By digest, so that the same commit makes the same image. Renew it now and then:
#   docker buildx imagetools inspect python:3.12-slim --format '{{.Manifest.Digest}}'
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea

WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY openapi openapi
COPY fixtures fixtures
COPY stub_server stub_server
# The bundled contract is kept by the first application that is made, beside byte code that the sandbox may not write.
RUN pip install --no-cache-dir --constraint constraints.txt '.[postgresql]' && useradd --create-home --uid 10001 sandbox \
    && python -Ic "from stub_server.app import create_app; create_app()"

USER sandbox
WORKDIR /home/sandbox

# Inside a container the server must listen on every address, so anyone who reaches the port can call it. The control
# surface (/_sandbox/…) then answers only with the key that STUB_ADMIN_KEY sets, and tokens are signed with a secret
# that is new at every start unless STUB_JWT_SECRET sets one:
#   docker run -p 4600:4600 -e STUB_ADMIN_KEY=… membership-sandbox
ENV STUB_HOST=0.0.0.0 STUB_PORT=4600 PYTHONUNBUFFERED=1
EXPOSE 4600
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", \
    "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"STUB_PORT\"]}/_sandbox/health', timeout=2)"]
ENTRYPOINT ["stub-server"]
