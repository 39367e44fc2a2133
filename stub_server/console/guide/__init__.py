"""The documentation as pages of the server, `/guide`, and its search.

It reads the Markdown files of the package and the operations of the contract, and imports
`contract` alone. Begin with `guide.py`. `console/guide_pages.py` shows what it makes.
"""
