"""The version of this package, in the one place that states it, and the commit that it was
installed from.
"""

__version__ = "0.3.0"


def installed_commit() -> str | None:
    """The commit of which pip has installed this package; None if it was installed in
    another way.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("membership-sandbox").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    commit: str | None = json.loads(origin or "{}").get("vcs_info", {}).get("commit_id")
    return commit
