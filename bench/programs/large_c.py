# SPDX-License-Identifier: Apache-2.0
"""Prints a large C file for a compiler to work on: many functions with loops, switches and
structures, always the same. It is made where it is needed, so that the tree need not hold it."""

FUNCTIONS = 36

HEAD = """struct state {
  int kind, count;
  double values[16];
  struct state *next;
};
"""

FUNCTION = """
static int step_{n}(struct state *s, int input) {{
  int result = input ^ {a};
  for (int i = 0; i < s->count % 16; i++) {{
    s->values[i] = s->values[(i + {b}) % 16] * {c}.5 + input;
    if (s->values[i] > {a}.0)
      result += i * {b};
  }}
  switch ((s->kind + result) % 7) {{
  case 0: result += {a}; break;
  case 1: result -= s->count; s->kind = {b}; break;
  case 2: while (result > {c} && s->next) {{ result /= 2; s = s->next; }} break;
  case 3: return result << {d};
  case 5: for (struct state *p = s; p; p = p->next) result += p->kind * {c}; break;
  default: s->count++;
  }}
  return result;
}}

int run_{n}(struct state *s, int input) {{
  int sum = step_{n}(s, input);
  for (int i = 0; i < {c}; i++)
    sum += {other}(s, sum + i) % ({d} + 2);
  return sum;
}}
"""


def main():
    print(HEAD)
    for n in range(FUNCTIONS):
        other = f"step_{n - 1}" if n else "step_0"
        print(FUNCTION.format(n=n, other=other, a=n * 7919 % 1009, b=n % 13 + 1, c=n * 31 % 97 + 2,
                              d=n % 9))


main()
