"""The documents connector is a TextSearch, over a plain store and over one without filters."""

from __future__ import annotations

import os
from functools import partial

import pytest

from portico.search import And, AnyOf, Equal, FilterSupport, Not, Or
from portico_documents.conditions import metadata_of
from portico_testkit.fakes.hybrid_search import DictHybridStore
from portico_testkit.package import PackageKit
from portico_testkit.search_index import SearchIndexKit
from portico_testkit.text_search import TextSearchKit

FILES = {
    "doors.md": "# Doors\n\nA door is painted red.\n\n## Handles\n\nThe handle of a door is brass.\n",
    "guide/garden.md": "# Garden\n\nBehind the garden door stands an apple tree.\n",
    "guide/deep/walls.txt": "A wall without a door is a boundary.\n",
    "roof.txt": "A roof of slate keeps the rain out.\n",
    "code.py": "def open_door(key):\n    return key\n",
    "README": "Everything about houses: door, roof, wall.\n",
}


class Kit(TextSearchKit):
    query = "how is a door painted"
    other_query = "roof of slate"
    filters = (
        Equal("path", "doors.md"),
        Equal("type", "md"),
        AnyOf("type", ("txt", "py")),
        Equal("type", ""),
        Equal("folder", "guide"),
        AnyOf("folder", ("guide/deep", "nowhere")),
        And((Equal("type", "md"), Not(Equal("folder", "guide")))),
        Or((Equal("folder", "guide"), Equal("path", "README"))),
    )

    @pytest.fixture(autouse=True)
    def filled(self, folder):
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def fields_of(self, record):
        return metadata_of(record.path)

    def best(self):
        return "A door is painted red."

    @pytest.fixture
    def failing_search(self, make_search, folder):
        return make_search(path=folder / "nowhere")


class TestDocumentsSearch(Kit):
    @pytest.fixture
    def text_search(self, make_search):
        return make_search()


class TestDocumentsSearchOverAForgetfulStore(Kit):
    @pytest.fixture
    def text_search(self, make_search, store):
        store.persistent = False
        return make_search()


class TestDocumentsSearchOverAStoreWithoutFilters(Kit):
    @pytest.fixture
    def text_search(self, make_search, store):
        store.filter_support = FilterSupport.nothing()
        return make_search()


class TestDocumentsSearchByTheWordsOfTheStore(Kit):
    @pytest.fixture
    def store(self):
        return lasting(DictHybridStore())

    @pytest.fixture
    def text_search(self, make_search):
        return make_search(lexical="store")

    @pytest.fixture
    def failing_search(self, make_search, folder):
        return make_search(path=folder / "nowhere", lexical="store")


class TestDocumentsSearchByTheWordsOfAStoreWithoutFilters(TestDocumentsSearchByTheWordsOfTheStore):
    @pytest.fixture
    def text_search(self, make_search, store):
        store.filter_support = FilterSupport.nothing()
        return make_search(lexical="store")


def lasting(store):
    """Have a store outlive a search object here, as one in a folder outlives a process."""
    store.persistent = True
    return store


class Files:
    """A folder of which every change has a time of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.time = 1_600_000_000

    def write(self, name, text):
        self.time += 1
        (self.folder / name).write_text(text)
        os.utime(self.folder / name, (self.time, self.time))

    def remove(self, name):
        (self.folder / name).unlink()


class TestFolderIndex(SearchIndexKit):
    @pytest.fixture
    def documents(self, folder):
        return Files(folder)

    @pytest.fixture
    def missing(self, make_search, folder):
        return make_search(path=folder / "nowhere")


class TestFolderIndexOfAStoreWithWords(TestFolderIndex):
    @pytest.fixture
    def store(self):
        return lasting(DictHybridStore())

    @pytest.fixture
    def make_search(self, make_search):
        return partial(make_search, lexical="store")


Kit.__test__ = False
for kind in (
    TestDocumentsSearch,
    TestDocumentsSearchOverAForgetfulStore,
    TestDocumentsSearchOverAStoreWithoutFilters,
    TestDocumentsSearchByTheWordsOfTheStore,
    TestDocumentsSearchByTheWordsOfAStoreWithoutFilters,
):
    kind.__test__ = True


class TestPackage(PackageKit):
    distribution = "portico-documents"
