import Mathlib.Algebra.Group.Basic

/-!
# Parity

Even numbers, and what it means for $n$ to be twice $k$.

## Main results

* `Parity.isTwice_add`: sums of even numbers are even
-/

universe u

namespace Parity

variable {M : Type u} [AddCommMonoid M] {m n : M} (k : M)

/-- `IsTwice n` says that $n = k + k$ for some $k$. -/
def IsTwice (n : M) : Prop :=
  ∃ k, n = k + k

/- theorem not_read : False := sorry /- nested -/ theorem nor_this : False -/

/-- The double of anything is even. -/
@[simp, deprecated "use `two" (since := "2026-01-01")]
theorem isTwice_double : IsTwice (k + k) := ⟨k, rfl⟩

/-- A sum of even numbers is even: $m + n = 2(j + k)$. -/
protected theorem isTwice_add (hm : IsTwice m) -- the first
    (hn : IsTwice n) :
    IsTwice (m + n) := by
  obtain ⟨j, rfl⟩ := hm
  obtain ⟨k, rfl⟩ := hn
  have text := "theorem inside_a_string : False"
  exact ⟨j + k, add_add_add_comm ..⟩

#align parity.is_twice_add Parity.isTwice_add

section Order
variable [LinearOrder M] (hpos : 0 < m)

lemma abs_isTwice (h : IsTwice m) :
    |m| + |n| = n ∨ IsTwice |m| := by
  sorry

open Classical in
/-- Half of a number, or zero. -/
noncomputable def half : M → M
  | n => if h : IsTwice n then h.choose else 0

end Order

theorem _root_.IsTwice.zero' : IsTwice (0 : ℕ) := ⟨0, rfl⟩

end Parity
