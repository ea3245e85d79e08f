"""Words of a question in any script, and words that no post has."""

import pytest

from pyterrier_mathamr.engine import SearchEngine
from tests.engine.conftest import built

CHINESE = [
    {"id": "cauchy", "title": "柯西列", "text": "数列称为柯西列,若对任意正数存在一个下标。"},
    {"id": "bolzano", "text": "每个有界实数列都有收敛子列。"},
    {"id": "monotone", "text": "每个数列都有单调子列。"},
    {"id": "compact", "text": "紧集上的连续函数取得最大值和最小值。"},
    {"id": "lagrange", "text": "有限群的子群的阶整除群的阶。"},
    {"id": "korean", "text": "연속함수는 극한을 보존한다."},
    {"id": "hindi", "text": "समूह का प्रत्येक उपसमूह।"},
]


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return built(tmp_path_factory.mktemp("chinese") / "engine", CHINESE)


@pytest.mark.parametrize(
    ("query", "docno"),
    [
        ("收敛子列", "bolzano"),
        ("什么是柯西列?", "cauchy"),
        ("单调", "monotone"),
        ("连续函数的最大值", "compact"),
        ("群", "lagrange"),  # one character
        ("극한", "korean"),  # without its ending
        ("उपसमूह", "hindi"),
    ],
)
def test_words_of_a_clause_find_its_post(chinese: SearchEngine, query: str, docno: str) -> None:
    assert chinese.bm25()(chinese.frame(query))["docno"].iloc[0] == docno
    assert chinese.search(query)["docno"].iloc[0] == docno


def test_an_explanation_names_the_characters_that_match(chinese: SearchEngine) -> None:
    parts = chinese.explain("收敛数列", "bolzano").parts
    words = parts[parts["part"] == "word"]
    assert set(words["query"]) == set(words["document"]) == {"收", "敛", "收敛", "数", "列", "数列"}
