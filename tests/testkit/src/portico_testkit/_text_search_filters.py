"""What every TextSearch must do with filters, by what it declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from portico.errors import UnsupportedOption
from portico.ports import TextSearch
from portico.search import And, Filter, FilterSupport, Not, Or, TextSearchOptions
from portico_testkit.text_search_cases import ALL, all_by, found_by, is_whole, refused_filters

__all__ = ["SearchFilters"]


class SearchFilters:
    """A part of `portico_testkit.text_search.TextSearchKit`, which is the one to subclass."""

    query: ClassVar[str]
    filters: ClassVar[tuple[Filter, ...]]
    unknown_field: ClassVar[str]

    def fields_of(self, record: Any) -> Mapping[str, object] | None:
        """Return a record's values of the fields that are filtered by."""
        return None

    @pytest.mark.asyncio
    async def test_filters_keep_what_they_say(self, text_search: TextSearch) -> None:
        """A filtered search finds the passages that the filter keeps, all of them, and no others."""
        every = await (await text_search.get_search_results(self.query, TextSearchOptions(top=ALL))).list()
        unfiltered = await all_by(text_search, self.query)
        fields = text_search.capabilities.filter.fields
        assert self.filters or fields == {}, "the source takes filters, and the kit has none to try: give it `filters`"
        for filter in self.filters:
            options = TextSearchOptions(top=ALL, filter=filter)
            kept = await (await text_search.get_search_results(self.query, options)).list()
            assert kept, f"{filter} keeps nothing of {self.query!r}"
            left_out = await all_by(text_search, self.query, filter) != unfiltered
            assert left_out, f"{filter} leaves nothing out of {self.query!r}"
            told = [self.fields_of(record) for record in kept]
            wrong = [
                of_record
                for of_record in told
                if of_record is not None and not FilterSupport.matches(filter, of_record)
            ]
            assert not wrong, f"{filter} kept {wrong}"
            known = [of_record for record in every if (of_record := self.fields_of(record)) is not None]
            if len(known) == len(every) and is_whole(text_search, every):
                expected = sum(FilterSupport.matches(filter, of_record) for of_record in known)
                assert len(kept) == expected, f"{filter} kept {len(kept)} passages; {expected} pass it"

    @pytest.mark.asyncio
    async def test_filters_combine_as_declared(self, text_search: TextSearch) -> None:
        """Not is the complement, And and Or of one filter are that filter."""
        combine = text_search.capabilities.filter.combine
        every = await all_by(text_search, self.query)
        for filter in self.filters:
            kept = await all_by(text_search, self.query, filter)
            if "And" in combine:
                assert await all_by(text_search, self.query, And((filter, filter))) == kept, f"And of twice {filter}"
            if "Or" in combine:
                assert await all_by(text_search, self.query, Or((filter, filter))) == kept, f"Or of twice {filter}"
            if "Not" in combine and is_whole(text_search, every):
                rest, expected = len(await all_by(text_search, self.query, Not(filter))), len(every) - len(kept)
                assert rest == expected, f"Not({filter}) keeps {rest} of {expected}"

    @pytest.mark.asyncio
    async def test_other_filters_are_refused(self, text_search: TextSearch) -> None:
        """Nothing is dropped in silence: a filter that cannot be applied is an error that says what can."""
        for filter in refused_filters(text_search.capabilities.filter, self.unknown_field):
            with pytest.raises(UnsupportedOption) as caught:
                await found_by(text_search, self.query, TextSearchOptions(filter=filter))
            fields = text_search.capabilities.filter.fields or {}
            unnamed = [field for field in fields if field not in str(caught.value)]
            assert not unnamed, f"the message for {filter} does not name {unnamed}: {caught.value}"
