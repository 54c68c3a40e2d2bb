"""What portico-web-pages registers."""

from portico.registration import Registration


def portico_page_readers() -> list[Registration]:
    """Register the reader of web pages."""
    return [
        Registration(
            name="web-pages",
            factory="portico_web_pages.reader:WebPagesPageReader",
            settings="portico_web_pages.config:WebPagesSettings",
            summary="The main text of web pages, PDF and plain text, from public addresses only.",
        )
    ]


def portico_text_searches() -> list[Registration]:
    """Register the search that gives whole pages for another search's results."""
    return [
        Registration(
            name="full-pages",
            factory="portico_web_pages.full_pages:full_pages",
            settings="portico_web_pages.config:FullPagesSettings",
            summary="Another source's results with the text of the whole page in place of the snippet.",
        )
    ]
