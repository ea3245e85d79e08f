from .answers import Answers as Answers
from .server import make_app as make_app
from .server import serve_page as serve_page
from .workers import SeparateAnswers as SeparateAnswers
