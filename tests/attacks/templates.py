"""Chat templates written to hurt: each runs away, or reaches for what it must not have."""

GROW = "{% set ns = namespace(x=SEED) %}{% for i in range(60) %}STEP{% endfor %}{{ ns.x }}"


def growing(step: str, seed: str = "'xxxx'") -> str:
    """Sixty rounds of a step that at least doubles `ns.x`."""
    return GROW.replace("SEED", seed).replace("STEP", step)


RUNAWAY = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}"
    "{% endfor %}{% endfor %}",
    "huge range": "{% for a in range(10**9) %}x{% endfor %}",
    "text times a number": "{{ 'x' * 10**10 }}",
    "list times a number": "{{ [1] * 10**9 }}",
    "number times a text": "{{ 10**10 * 'x' }}",
    "power": "{{ (10**10)**(10**10) }}",
    "squaring": growing("{% set ns.x = ns.x * ns.x %}", "99999"),
    "doubling with ~": growing("{% set ns.x = ns.x ~ ns.x %}"),
    "doubling with +": growing("{% set ns.x = ns.x + ns.x %}"),
    "doubling with a block": growing("{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
    "doubling with join": growing("{% set ns.x = [ns.x, ns.x] | join %}"),
    "doubling with the method join": growing("{% set ns.x = ns.x.join(['', '', '']) %}"),
    "squaring with replace": growing("{% set ns.x = ns.x.replace('x', ns.x) %}"),
    "squaring with the filter replace": growing("{% set ns.x = ns.x | replace('x', ns.x) %}"),
    "doubling a list": growing("{% set ns.x = ns.x + ns.x %}", "[1]"),
    "nesting lists": growing("{% set ns.x = [ns.x, ns.x] %}", "[1]"),
    "nesting tuples as a key": growing("{% set ns.x = (ns.x, ns.x) %}{% set d = {ns.x: 1} %}", "(1,)"),
    "nesting dicts": growing("{% set ns.x = dict(a=ns.x, b=ns.x) %}", "[1]"),
    "nesting by *": growing("{% set ns.x = [ns.x] * 2 %}", "[1]"),
    "nesting by +": growing("{% set ns.x = [ns.x] + [ns.x] %}", "[1]"),
    "nesting by map": growing("{% set ns.x = [1, 1] | map(attribute='zz', default=ns.x) | list %}", "[1]"),
    "nesting by arguments": "{% set a = namespace(x=(1,)) %}{% macro m() %}{% set a.x = varargs %}{% endmacro %}"
    "{% for i in range(60) %}{{ m(a.x, a.x) }}{% endfor %}{{ a.x }}",
    "comparing nested lists": "{% set a = namespace(x=[1]) %}{% set b = namespace(x=[1]) %}{% for i in range(60) %}"
    "{% set a.x = [a.x, a.x] %}{% set b.x = [b.x, b.x] %}{% endfor %}{{ a.x == b.x }}",
    "macro tree": "{% macro a(n) %}{% if n %}{{ a(n - 1) }}{{ a(n - 1) }}{% endif %}{% endmacro %}{{ a(60) }}",
    "endless macro": "{% macro a(n) %}{{ a(n) }}{% endmacro %}{{ a(60) }}",
    "call blocks": "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}" + "{% call m() %}" * 40 + "x" * 100
    + "{% endcall %}" * 40,
    "many sorts": "{% set L = range(99999) | list %}{{ ([L] * 99999) | map('sort') | list | length }}",
    "many searches": "{% set L = range(99999) | list %}{{ range(99999) | select('in', L) | list }}",
    "indent by a long text": "{{ ('a\n' * 100000) | indent('x' * 1000000) }}",
    "number of a million digits": "{{ ('9' * 1000000) | int + 1 }}{{ ('9' * 4000) | int * (('9' * 4000) | int) }}",
    "deep brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "deep ifs": "{% if 1 %}" * 3000,
    "long sum": "{{ 1" + "+1" * 20000 + " }}",
}  # fmt: skip

REACHING = {
    "subclasses": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals of a method": "{{ messages.__init__.__globals__ }}",
    "globals of a function": "{{ raise_exception.__globals__ }}",
    "globals of a macro": "{% macro m() %}{% endmacro %}{{ m.__init__.__globals__ }}",
    "cycler": "{{ cycler.__init__.__globals__.os }}",
    "attr filter": "{{ messages | attr('__class__') }}",
    "item for attribute": "{{ messages['__class__'] }}{{ messages[0]['__class__'].x }}",
    "map to attribute": "{{ messages | map(attribute='__class__') | list }}",
    "environment": "{{ self._TemplateReference__context.environment }}",
    "format string": "{{ '{0.__class__}'.format(messages) }}",
    "format map": "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "wide format": "{{ '{:>1000000000}'.format('x') }}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "ljust": "{{ 'x'.ljust(10**9) }}",
    "center": "{{ 'x' | center(10**9) }}",
    "zfill": "{{ 'x'.zfill(10**9) }}",
    "expandtabs": "{{ '\t'.expandtabs(10**9) }}",
    "to_bytes": "{{ (1).to_bytes(10**9, 'big') }}",
    "encode": "{{ 'x'.encode('idna') }}",
    "translate": "{{ 'x'.translate({120: 'y' * 1000000}) }}",
    "append": "{{ messages.append(1) }}",
    "update": "{{ messages[0].update({}) }}",
    "fromkeys": "{{ {}.fromkeys(range(9)) }}",
    "print a namespace": "{{ namespace(a=1) }}",
    "print a function": "{{ range }}",
    "print a generator": "{{ messages | map('upper') }}",
    "namespace in itself": "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns | tojson }}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import 'os' as os %}",
    "extends": "{% extends 'x' %}",
    "block": "{% block a %}x{% endblock %}{{ self.a() }}",
    "wide date": "{{ strftime_now('%999999999d') }}",
    "lipsum": "{{ lipsum(n=100000) }}",
    "wordwrap": "{{ 'a b' | wordwrap(1, wrapstring='x' * 1000000) }}",
    "batch": "{{ range(10) | batch(10**9, 'x') | list }}",
    "debug": "{% debug %}",
    "trans": "{% trans %}x{% endtrans %}",
}
