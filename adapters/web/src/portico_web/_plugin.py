"""What portico-web registers."""

from portico.plugins import Registration


def portico_http_clients() -> list[Registration]:
    """Register the client on httpx."""
    return [
        Registration(
            name="httpx",
            factory="portico_web.http.client:HttpxHttpClient",
            settings="portico_web.http.config:HttpxSettings",
            summary="HTTP for connectors on httpx: bounded, patient with services that ask for it, discreet with keys.",
        )
    ]


def portico_page_readers() -> list[Registration]:
    """Register the reader of web pages."""
    return [
        Registration(
            name="web-pages",
            factory="portico_web.pages.reader:WebPagesPageReader",
            settings="portico_web.pages.config:WebPagesSettings",
            summary="The main text of web pages, PDF and plain text, from public addresses only.",
        )
    ]


def portico_text_searches() -> list[Registration]:
    """Register the search that gives whole pages for the results of another search."""
    return [
        Registration(
            name="full-pages",
            factory="portico_web.pages.reader:full_pages",
            settings="portico_web.pages.config:FullPagesSettings",
            summary="Another source's results with the text of the whole page in place of the snippet.",
        )
    ]
