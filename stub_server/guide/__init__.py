"""Floor 10: the documentation as pages of the server, `/guide`, and its search.

It reads the Markdown files of the package, and may import `kernel/` alone. Begin with `guide.py`.
`console/guide_pages.py` shows what it makes.
"""
