"""The reference pages of the docs, made from the contract and the code: `make docs` writes them."""
