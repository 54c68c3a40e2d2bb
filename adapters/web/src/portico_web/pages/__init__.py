"""The main text of web pages for Portico: HTML, PDF and plain text, read with care.

`reader` puts two halves together. Fetching: `links` and `addresses` say what may be read; `connecting`, `metering`
and `transport` are the way there; `robots`, `turns`, `unpacking` and `cache` serve `fetching`, which follows one
link to its page. Finding the text: `extraction` keeps processes that run `_worker`, which picks `_html`, `_tags` or
`_pdf`.
"""
