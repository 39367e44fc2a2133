# By digest, so that the same commit makes the same image. Renew it now and then:
#   docker buildx imagetools inspect python:3.12-slim --format '{{.Manifest.Digest}}'
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS build

RUN apt-get update && apt-get install --yes --no-install-recommends binutils
WORKDIR /app
COPY pyproject.toml constraints.txt README.md SECURITY.md CHANGELOG.md LICENSE docs/deploy/rootfs.py ./
COPY openapi openapi
COPY fixtures fixtures
COPY docs docs
COPY stub_server stub_server
# The bundled contract is kept by the first application that is made, beside byte code that the sandbox may not write.
RUN python -m venv env \
    && env/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt '.[mcp,postgresql]' \
    && env/bin/python -Ic "import stub_server.console.application, stub_server.app; stub_server.app.create_app()" \
    && env/bin/python rootfs.py rootfs && mkdir home

# Only what rootfs.py has copied: about 140 MB, without a shell.
FROM scratch
COPY --from=build /app/rootfs /
COPY --from=build --chown=10001:10001 /app/home /home/sandbox

USER sandbox
WORKDIR /home/sandbox

# Inside a container the server must listen on every address, so anyone who reaches the port can call it. The control
# surface (/_sandbox/…) then answers only with the key that STUB_ADMIN_KEY sets, and tokens are signed with a secret
# that is new at every start unless STUB_JWT_SECRET sets one:
#   docker run -p 4600:4600 -e STUB_ADMIN_KEY=… membership-sandbox
ENV PATH=/app/env/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
ENV STUB_HOST=0.0.0.0 STUB_PORT=4600 PYTHONUNBUFFERED=1
EXPOSE 4600
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", \
    "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"STUB_PORT\"]}/_sandbox/health', timeout=2)"]
ENTRYPOINT ["stub-server"]
