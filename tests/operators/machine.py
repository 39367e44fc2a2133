"""The machine of an operator, below a folder: its files, its nginx and Prometheus, and systemctl in
place of systemd's.

Commands of docs/teams.md run in it as they stand, but that its paths are below the folder, and its
ports free ones.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from ..support.authority import server_context
from ..support.install import plain_env
from ..support.processes import free_port
from .proxies import NAME, PATH

ROOT = Path(__file__).parents[2]
PATHS = re.compile(r"(?<![\w.$/-])/(?=(?:opt|etc|var)/)")
"""Where a path of the machine begins."""

SYSTEMCTL = '''#!{python}
"""Starts, stops, restarts and reloads what the units name, as systemd does."""
import os, re, shlex, signal, subprocess, sys, time
from pathlib import Path

root, (verb, *units) = Path({root!r}), sys.argv[1:]
pids = root / "pids"
pids.mkdir(exist_ok=True)

def start(name):
    text = (root / "etc/systemd/system" / f"{{name}}.service").read_text()
    env = dict(os.environ) | dict(re.findall(r"^Environment=(\\w+)=(.*)$", text, re.M))
    for file in re.findall(r"^EnvironmentFile=(.*)$", text, re.M):
        env |= dict(line.split("=", 1) for line in Path(file).read_text().split("\\n") if line)
    state = re.findall(r"^StateDirectory=(.*)$", text, re.M)
    for folder in state:
        (root / "var/lib" / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    command = re.search(r"^ExecStart=(.*)$", text, re.M)[1]
    out = open(root / f"{{name}}.log", "ab")
    made = subprocess.Popen(shlex.split(command), env=env, stdout=out, stderr=out, start_new_session=True)
    (pids / name).write_text(str(made.pid))

def stop(name):
    pid = int((pids / name).read_text())
    os.kill(pid, signal.SIGTERM)
    while True:
        try:
            os.kill(pid, 0)
            if open(f"/proc/{{pid}}/stat").read().split()[2] == "Z":
                break
        except (ProcessLookupError, FileNotFoundError):
            break
        time.sleep(0.05)
    (pids / name).unlink()

for name in (unit for unit in units if not unit.startswith("-")):
    if verb in ("stop", "restart"):
        stop(name)
    if verb in ("enable", "start", "restart"):
        start(name)
    if verb == "reload":
        if (pids / name).exists():
            os.kill(int((pids / name).read_text()), signal.SIGHUP)
        else:
            start(name)
'''
UNIT = "[Service]\nExecStart={}\n"


class Machine:
    """What is below the folder; `run` runs a block of the page in a shell of root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = folder / "checkout"
        self.port = free_port()
        self.tls = free_port()
        self.prometheus = free_port()
        self.variables: dict[str, str] = {}
        for name in (
            "opt",
            "etc/systemd/system",
            "etc/nginx/conf.d",
            "etc/prometheus",
            "var/lib",
            "bin",
        ):
            (folder / name).mkdir(parents=True)
        _, self.authority = server_context(folder, NAME)
        self._copy_the_checkout()
        self._put_programs()

    def inside(self, text: str) -> str:
        """Text whose paths are those of the folder."""
        return PATHS.sub(f"{self.folder}/", text)

    def _copy_the_checkout(self) -> None:
        for name in (
            "pyproject.toml",
            "constraints.txt",
            "README.md",
            "SECURITY.md",
            "CHANGELOG.md",
            "LICENSE",
        ):
            (self.checkout / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.checkout)
        for name in ("docs", "openapi", "fixtures", "stub_server"):
            shutil.copytree(
                ROOT / name, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        deploy = self.checkout / "docs" / "deploy"
        for file in deploy.iterdir():
            text = self.inside(file.read_text(encoding="utf-8"))
            if file.suffix != ".py":
                text = text.replace("127.0.0.1:4600", f"127.0.0.1:{self.port}")
            text = text.replace("listen 443", f"listen 127.0.0.1:{self.tls}")
            text = text.replace("listen 80;", f"listen 127.0.0.1:{free_port()};")
            text = re.sub(r"\S+/letsencrypt/\S+\.pem", str(self.folder / "server.pem"), text)
            file.write_text(text, encoding="utf-8")

    def _put_programs(self) -> None:
        """systemctl, nginx with Debian's file, Prometheus at a free port, and the name in
        place of DNS.
        """
        folder = self.folder
        units = self.folder / "etc" / "systemd" / "system"
        self._script("systemctl", SYSTEMCTL.format(python=sys.executable, root=str(folder)))
        nginx = shutil.which("nginx", path=PATH)
        (folder / "temporary").mkdir()
        own = "".join(
            f"    {kind}_temp_path {folder / 'temporary'};\n" for kind in ("client_body", "proxy")
        )
        (folder / "etc" / "nginx" / "nginx.conf").write_text(
            f"user root;\ndaemon off;\npid {folder / 'nginx.pid'};\nerror_log"
            f" {folder / 'error.log'};\nevents {{}}\nhttp {{\n{own}    access_log off;\n    include"
            f" {folder / 'etc/nginx/conf.d'}/*.conf;\n}}\n",
            encoding="utf-8",
        )
        self._script(
            "nginx", f'#!/bin/sh\nexec {nginx} -c {folder / "etc/nginx/nginx.conf"} "$@"\n'
        )
        (units / "nginx.service").write_text(UNIT.format(folder / "bin" / "nginx"))
        files = (
            f"--config.file={folder / 'etc/prometheus/prometheus.yml'}"
            f" --storage.tsdb.path={folder / 'data'}"
        )
        command = f"prometheus {files} --web.listen-address=127.0.0.1:{self.prometheus}"
        (units / "prometheus.service").write_text(UNIT.format(command))
        self._script("chgrp", "#!/bin/sh\n")
        (folder / ".curlrc").write_text(
            f'silent\nfail-with-body\ncacert = "{self.authority}"\nconnect-to ='
            f' "{NAME}:443:127.0.0.1:{self.tls}"\nretry = 20\nretry-connrefused\nretry-delay = 1\n'
        )

    def _script(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run(self, block: str) -> str:
        """What a block prints; variables that it exports stay, as in one shell."""
        path = os.pathsep.join([str(self.folder / "bin"), PATH.partition(os.pathsep)[2]])
        env = plain_env() | {
            "PATH": path,
            "HOME": str(self.folder),
            "STUB_SERVER": f"http://127.0.0.1:{self.port}",
        }
        env["STUB_PORT"] = str(self.port)
        env |= self.variables
        script = self.inside(block)
        file = self.folder / "variables"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{script}\nenv -0 > {file}"],
            cwd=self.checkout, env=env, capture_output=True, text=True, timeout=400,
        )  # fmt: skip
        assert 0 == done.returncode, f"{block}\n{done.stdout}\n{done.stderr}"
        self.variables = dict(
            pair.split("=", 1) for pair in file.read_text().split("\0") if "=" in pair
        )
        return done.stdout

    def stop(self) -> None:
        """End what systemctl has started."""
        for file in (self.folder / "pids").glob("*"):
            os.kill(int(file.read_text()), signal.SIGTERM)
