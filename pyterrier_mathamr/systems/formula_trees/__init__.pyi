from .artifact import FormulaTrees as FormulaTrees
from .artifact import FormulaTreesIndexer as FormulaTreesIndexer
from .artifact import TreesSnapshot as TreesSnapshot
