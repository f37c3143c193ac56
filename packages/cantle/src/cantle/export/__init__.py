"""A session as a page to read: one HTML file without scripts, or Markdown.

    entries → branches (one tree, laid out) → conversation (what each entry shows) → page
              figures (tokens, cost, time)  → charts                              ↗

Whatever stands in a session is hostile until :mod:`cantle.export.markup` has escaped it.
"""
