import Parity.Basic

open Parity (IsTwice)

/-- A walk of `length` steps. -/
structure LatticeWalk (G : Type*) [AddCommGroup G] extends Inhabited G where
  /-- The number of steps. -/
  length : ℕ
  step : Fin length → G

namespace LatticeWalk

variable {G : Type*} [AddCommGroup G] (w : LatticeWalk G)

/-! ### Closed walks -/

/-- A walk is closed if it returns to where it began. -/
class IsClosed : Prop where
  sum_eq_zero : ∑ i, w.step i = 0

inductive Turn | left | right
  deriving DecidableEq

instance : Inhabited Turn := ⟨.left⟩

instance (priority := low) instEmptyClosed [Subsingleton G] : IsClosed w where
  sum_eq_zero := Subsingleton.elim _ _

/-- A closed walk on the integers has an even number of steps. -/
theorem isTwice_length {w : LatticeWalk ℤ} [IsClosed w] (h : ∀ i, w.step i = 1 ∨ w.step i = -1) :
    IsTwice w.length := by
  sorry

axiom recurrent.{u} (H : Type u) : True

end LatticeWalk
