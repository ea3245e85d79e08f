"""A small release in the organizers' layout, and a home of ir_datasets that no test leaves anything in."""

import os
from pathlib import Path

import pytest

# Set before ir_datasets is asked for its home; each test may set its own.
os.environ.setdefault("IR_DATASETS_SKIP_DEPRECATED_WARNING", "true")

POSTS = """<?xml version="1.0" ?>
<posts>
   <row Id="10" PostTypeId="1" Score="7" AcceptedAnswerId="12" CreationDate="2011-02-03T04:05:06.070"
        Title="Why is &lt;span class=&quot;math-container&quot; id=&quot;1&quot;&gt;2&lt;3&lt;/span&gt;?"
        Body="&lt;p&gt;I do not see it.&lt;/p&gt;" Tags="&lt;inequality&gt;&lt;order-theory&gt;"/>
   <row Id="11" PostTypeId="2" ParentId="10" Body="&lt;p&gt;By counting.&lt;/p&gt;" Score="-2"/>
   <row Id="12" PostTypeId="2" ParentId="10" Body="&lt;p&gt;Since \
&lt;span class=&quot;math-container&quot; id=&quot;2&quot;&gt;3-2=1&lt;/span&gt; is positive.&lt;/p&gt;"/>
   <row Id="13" PostTypeId="1" Title="Another" Body="&lt;p&gt;Question.&lt;/p&gt;"/>
   <row Id="14" PostTypeId="2" ParentId="13" Body="&lt;p&gt;Answer.&lt;/p&gt;"/>
</posts>
"""

TASK1 = """<?xml version="1.0" ?>
<Topics>
   <Topic number="A.301">
      <Title>Norms of &lt;span class=&quot;math-container&quot; id=&quot;q_1&quot;&gt;$A$&lt;/span&gt;</Title>
      <Question>&lt;p&gt;Is &lt;span class=&quot;math-container&quot; id=&quot;q_2&quot;&gt;$a<b$&lt;/span&gt; \
&amp;amp; true?&lt;/p&gt;</Question>
      <Tags>linear-algebra,norm</Tags>
   </Topic>
   <Topic number="A.302">
      <Title>Second</Title>
      <Question>&lt;p&gt;No formula here.&lt;/p&gt;</Question>
      <Tags>functions</Tags>
   </Topic>
</Topics>
"""

TASK2 = TASK1.replace("A.30", "B.30").replace(
    "      <Title>Norms", "      <Formula_Id>q_2</Formula_Id>\n      <Latex>a<b</Latex>\n      <Title>Norms"
)

LATEX = """id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\r
1\t10\t10\ttitle\t\t7\t77\t\t2<3\r
2\t12\t10\tanswer\t\t8\t78\t\t3-2=1\r
1\t10\t10\ttitle\t\t7\t77\t\tlisted twice\r
3\t14\t13\tanswer\t\t\t\t\t\r
"""

OFFICIAL = {
    "Collection/Posts.V1.3.xml": POSTS,
    "Collection/Old versions/V1.9/Posts.V1.9.xml": "<posts/>",
    "Formulas/latex_representation_v3/1.tsv": LATEX,
    "Topics/Task1&3 Topics/ARQMath-3/Topics/Topics_Task1_2022_V0.1.xml": TASK1,
    "Topics/Task2 Topics/ARQMath-3/Topics/Topics_Task2_2022_V0.1.xml": TASK2,
    "Evaluation/ Scripts & Qrels/ARQMath-3/Task 1/Qrel Files/qrel_task1_2022_official.tsv": (
        "A.301\t0\t12\t3\nA.301\t0\t14\t0\n"
    ),
    "Evaluation/ Scripts & Qrels/ARQMath-3/Task2/Qrel Files/qrel_task2_2022_official.tsv": "B.301\t0\t77\t2\n",
    "Evaluation/ Scripts & Qrels/ARQMath-3/Task3/Qrel Files/qrel_task3_2022_official_complete.tsv": (
        "A.301\t0\td_1\t3\nA.301\t0\td_2\t5\nA.302\t0\td_3\t6\nA.302\t0\td_4\t1\n"
    ),
}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder like the organizers' drive, with three questions' worth of posts."""
    folder = tmp_path / "ARQMath"
    for name, text in OFFICIAL.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def no_local_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without a copy of the release and with an empty home of ir_datasets."""
    from pyterrier_mathamr.arqmath import collection

    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.delenv("ARQMATH_HOME", raising=False)
    monkeypatch.setattr(collection, "_named", [])
