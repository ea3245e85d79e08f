r"""Commands of common LaTeX packages, as macros.

Each line of `PACKAGES` is the names, the arguments as in ``\NewDocumentCommand`` and the meaning; an indented one
continues it. Only commands are here that the reader of formulas does not know; a document that defines one of them
itself uses its own. Arguments of a blueprint are data for Lean, and not text.
"""

PACKAGES = r"""
abs,absolutevalue s o m|\IfBooleanTF{#1}{|#3|}{\left|#3\right|}
norm s o m|\IfBooleanTF{#1}{\|#3\|}{\left\|#3\right\|}
eval,evaluated s d() o g|\left.\IfNoValueTF{#2}{\IfNoValueTF{#3}{#4}{#3}}{#2}\right|
order s m|\mathcal{O}\left(#2\right)
comm,commutator s m m|\left[#2,#3\right]
acomm,anticommutator,poissonbracket,pb s m m|\left\{#2,#3\right\}
qty,quantity s d() o g g|\IfNoValueTF{#5}{\IfNoValueTF{#2}{\IfNoValueTF{#3}{\left\{#4\right\}}{
    \left[#3\right]}}{\left(#2\right)}}{#4\,\unit{#5}}
pqty m|\left(#1\right)
bqty m|\left[#1\right]
vqty m|\left|#1\right|
Bqty m|\left\{#1\right\}
vb,vectorbold s m|\mathbf{#2}
va,vectorarrow s m|\vec{\mathbf{#2}}
vu,vectorunit s m|\hat{\mathbf{#2}}
dd,differential o g d()|\mathrm{d}\IfNoValueF{#1}{^{#1}}\IfNoValueF{#2}{#2}\IfNoValueF{#3}{\left(#3\right)}
dv,derivative,odv s o m g|\IfNoValueTF{#4}{\frac{d\IfNoValueF{#2}{^{#2}}}{d #3\IfNoValueF{#2}{^{#2}}}}{
    \frac{d\IfNoValueF{#2}{^{#2}} #3}{d #4\IfNoValueF{#2}{^{#2}}}}
pdv,partialderivative,pderivative s o m g g|\IfNoValueTF{#5}{\IfNoValueTF{#4}{\frac{\partial\IfNoValueF{#2}
    {^{#2}}}{\partial #3\IfNoValueF{#2}{^{#2}}}}{\frac{\partial\IfNoValueF{#2}{^{#2}} #3}{
    \partial #4\IfNoValueF{#2}{^{#2}}}}}{\frac{\partial^2 #3}{\partial #4\partial #5}}
fdv,functionalderivative s o m g|\IfNoValueTF{#4}{\frac{\delta\IfNoValueF{#2}{^{#2}}}{
    \delta #3\IfNoValueF{#2}{^{#2}}}}{\frac{\delta\IfNoValueF{#2}{^{#2}} #3}{\delta #4\IfNoValueF{#2}{^{#2}}}}
ip,innerproduct s m m|\left\langle #2\middle|#3\right\rangle
op,outerproduct,ketbra,dyad s m g|\left|#2\right\rangle\left\langle\IfNoValueTF{#3}{#2}{#3}\right|
ev,expval,expectationvalue s m g|\IfNoValueTF{#3}{\left\langle #2\right\rangle}{
    \left\langle #3\middle|#2\middle|#3\right\rangle}
mel,matrixel,matrixelement s m m m|\left\langle #2\middle|#3\middle|#4\right\rangle
mqty,matrixquantity,smqty m|\begin{matrix}#1\end{matrix}
pmqty m|\begin{pmatrix}#1\end{pmatrix}
bmqty m|\begin{bmatrix}#1\end{bmatrix}
vmqty,mdet m|\begin{vmatrix}#1\end{vmatrix}
imat,identitymatrix m|I_{#1}
qq m|\quad\text{#1}\quad
ifstrempty,ifblank m m m|\IfBlankTF{#1}{#2}{#3}
csuse m|\csname #1\endcsname
mathclap,mathllap,mathrlap,smashoperator,clap,llap,rlap,mathmakebox O{} m|#2
shortintertext,intertext m|\\\text{#1}\\
cancelto m m|\cancel{#2}
SI,SIrange o m o m|\num{#2}\,\unit{#4}
num o m|#2
ang o m|#2^{\circ}
si,unit o m|\mathrm{#2}
square m|#1^2
cubic m|#1^3
uses,proves,discussion,alsoIn m|
crefrange,Crefrange m m|
namecref,nameCref,labelcref,cpageref,vref,Vref,fullref m|
texorpdfstring m m|#1
alert,structure,only,uncover,visible,invisible d<> m|#2
onslide,pause d<> o|
alt d<> m m|#2 #3
frametitle,framesubtitle d<> o m|\par #3\par{}
nonscript,allowbreak,delimsize,leanok,notready,mathlibok,titlepage,framebreak,phantomsection,qedhere |
mathcolor m m|#2
mathsfit m|\mathsf{#1}
mathchoice m m m m|#1
vdotswithin m|\vdots
marginpar o m|
@firstofone m|#1
@firstoftwo m m|#1
@secondoftwo m m|#2
@gobble m|
highlight,hl m|#1
todo,missingfigure O{} m|#2
"""
SYMBOLS = r"""
vdot,dotproduct \cdot crossproduct,cp \times grad,gradient \nabla divergence \nabla\cdot curl \nabla\times laplacian
\nabla^2 var,variation \delta tr,trace \operatorname{tr} Tr,Trace \operatorname{Tr} rank \operatorname{rank} erf
\operatorname{erf} Res \operatorname{Res} pv,principalvalue \mathcal{P} qcomma ,\quad qif \quad\text{if}\quad qthen
\quad\text{then}\quad qand \quad\text{and}\quad qor \quad\text{or}\quad qfor \quad\text{for}\quad qwhere
\quad\text{where}\quad given \mid meter,metre m second s kilogram kg gram g ampere A kelvin K mole mol candela cd hertz
Hz newton N pascal Pa joule J watt W coulomb C volt V ohm \Omega tesla T litre,liter l electronvolt eV
celsius,degreeCelsius {}^{\circ}C percent \% kilo k mega M giga G centi c milli m micro \mu nano n per / squared ^2
cubed ^3 coloneq \coloneqq
"""
"""Names and meanings of commands without arguments, in turn."""
