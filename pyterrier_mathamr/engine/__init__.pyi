from .ranking import BlendedRetriever as BlendedRetriever
from .reader import EngineSnapshot as EngineSnapshot
from .search_engine import SearchEngine as SearchEngine
