"""The control surface /_sandbox: operations with which tests control a sandbox."""
