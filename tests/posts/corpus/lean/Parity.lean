import Parity.Basic
import Parity.Walk
