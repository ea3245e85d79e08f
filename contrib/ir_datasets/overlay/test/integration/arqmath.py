import re
import unittest

from ir_datasets.datasets.arqmath import ArqmathTask1Query, ArqmathTask2Query
from ir_datasets.formats import TrecQrel

from .base import DatasetIntegrationTest

ANY = re.compile(".+", re.DOTALL)


class TestArqmath(DatasetIntegrationTest):
    def test_docs(self):
        for name, count in (
            ("arqmath", 2466080),
            ("arqmath/questions", 1020585),
            ("arqmath/answers", 1445495),
            ("arqmath/formulas", 28320920),
        ):
            # items: python -m unittest prints them with self._build_test_docs(name), given the release
            self._test_docs(name, count=count, items={})

    def test_queries(self):
        for name, count, first, last in (
            ("arqmath/2020/task1", 98, "A.1", None),
            ("arqmath/2022/task1", 100, "A.301", "A.400"),
            ("arqmath/2022/task3", 100, "A.301", "A.400"),
        ):
            items = {0: ArqmathTask1Query(first, ANY, ANY, ANY, ANY)}
            if last:
                items[count - 1] = ArqmathTask1Query(last, ANY, ANY, ANY, ANY)
            self._test_queries(name, count=count, items=items)
        for name in ("arqmath/2022/task2", "arqmath/2022/task2/visual"):
            self._test_queries(name, count=100, items={
                0: ArqmathTask2Query("B.301", ANY, ANY, ANY, ANY, "q_6", "\\|A\\|_2=\\sqrt{\\rho(A^TA)}", "A.301"),
            })  # fmt: skip

    def test_qrels(self):
        self._test_qrels("arqmath/2020/task1", count=39124, items={
            0: TrecQrel("A.1", "2190525", 0, "0"),
            9: TrecQrel("A.1", "12598", 0, "0"),
            39123: TrecQrel("A.99", "3046525", 0, "0"),
        })  # fmt: skip
        self._test_qrels("arqmath/2020/task2", count=12115, items={
            0: TrecQrel("B.1", "17396272", 2, "0"),
            9: TrecQrel("B.1", "25687758", 2, "0"),
            12114: TrecQrel("B.90", "19896122", 0, "0"),
        })  # fmt: skip
        self._test_qrels("arqmath/2020/task2/visual", count=6074, items={
            0: TrecQrel("B.1", "1051844", 2, "0"),
            9: TrecQrel("B.1", "331902", 0, "0"),
            6073: TrecQrel("B.90", "1725703", 0, "0"),
        })  # fmt: skip
        self._test_qrels("arqmath/2022/task1", count=34847, items={
            0: TrecQrel("A.301", "2329004", 2, "0"),
            9: TrecQrel("A.301", "1154533", 2, "0"),
            34846: TrecQrel("A.399", "2177690", 0, "0"),
        })  # fmt: skip
        self._test_qrels("arqmath/2022/task2", count=16189, items={
            0: TrecQrel("B.301", "15415864", 3, "0"),
            9: TrecQrel("B.301", "10223913", 3, "0"),
            16188: TrecQrel("B.400", "2596572", 0, "0"),
        })  # fmt: skip
        self._test_qrels("arqmath/2022/task2/visual", count=11538, items={
            0: TrecQrel("B.301", "60069", 3, "0"),
            9: TrecQrel("B.301", "6171862", 3, "0"),
            11537: TrecQrel("B.400", "10395", 0, "0"),
        })  # fmt: skip
        self._test_qrels("arqmath/2022/task3", count=722, items={0: TrecQrel("A.301", "d_1", 3, "0")})


if __name__ == "__main__":
    unittest.main()
