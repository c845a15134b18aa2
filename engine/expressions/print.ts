import type { Expression, Literal } from './expression.ts';

/** The precedence of an expression's operator: 1 `or` ... 8 unary minus, 9 names, literals and calls. */
const strengths: Readonly<Record<string, number>> = {
  or: 1,
  and: 2,
  not: 3,
  isNull: 4,
  isNotNull: 4,
  ...Object.fromEntries(
    ['=', '!=', '<', '<=', '>', '>=', '<=>', 'in', 'like', 'rlike'].map((name) => [name, 5]),
  ),
  '+': 6,
  '-': 6,
  '*': 7,
  '/': 7,
  '%': 7,
  negate: 8,
};

/** The text of an expression, as `--where` reads it, with the necessary parentheses. */
export function print(expression: Expression): string {
  switch (expression.kind) {
    case 'column':
      return printName(expression.name);
    case 'literal':
      return printLiteral(expression);
    case 'cast':
      return `${expression.onError === 'null' ? 'try_cast' : 'cast'}(${print(expression.value)} as ${expression.to})`;
    case 'when': {
      const branches = expression.branches.map(
        ({ when, value }) => ` when ${print(when)} then ${print(value)}`,
      );
      return `case${branches.join('')}${expression.otherwise ? ` else ${print(expression.otherwise)}` : ''} end`;
    }
    default:
      return printCall(expression.name, expression.args);
  }
}

function printCall(name: string, args: readonly Expression[]): string {
  const strength = strengths[name] ?? 9;
  const [left, right] = args;
  const own = printOneSided(name, args);
  if (own !== undefined) return own;
  if (strength === 9 || args.length !== 2) return `${name}(${args.map(print).join(', ')})`;
  // Comparisons don't chain; the other operators are left-associative, and `and` and `or` are associative.
  const first = inside(left, strength === 5 ? 6 : strength);
  const second = inside(right, name === 'and' || name === 'or' ? strength : strength + 1);
  return `${first} ${name === 'rlike' ? '~' : name} ${second}`;
}

/** Operators that are not written between two values; undefined for others. */
function printOneSided(name: string, [left, ...more]: readonly Expression[]): string | undefined {
  if (name === 'in' && more.length > 0) return `${inside(left, 6)} in (${more.map(print).join(', ')})`;
  if (left === undefined || more.length > 0) return undefined;
  if (name === 'negate') return `-${inside(left, 9)}`;
  if (name === 'not') return `not ${inside(left, 3)}`;
  // The parser reads a = b is null as a = (b is null).
  if (name === 'isNull') return `${inside(left, 6)} is null`;
  return name === 'isNotNull' ? `${inside(left, 6)} is not null` : undefined;
}

/** The text of a part, in parentheses if it binds less tightly than its place requires. */
function inside(part: Expression, strength: number): string {
  const own = part.kind === 'call' ? (strengths[part.name] ?? 9) : isNegative(part) ? 8 : 9;
  return own < strength ? `(${print(part)})` : print(part);
}

function isNegative(part: Expression): boolean {
  return part.kind === 'literal' && part.type !== 'utf8' && String(part.value).startsWith('-');
}

/** Words that cannot be column names without quotes. */
export const keywords =
  /^(and|or|not|in|is|null|true|false|like|rlike|between|case|when|then|else|end|cast|try_cast|as)$/i;

function printName(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) && !keywords.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function printLiteral({ type, value }: Literal): string {
  if (value === null) return type === 'null' ? 'null' : `cast(null as ${type})`;
  const text = `'${String(value).replaceAll("'", "''")}'`;
  if (type === 'utf8') return text;
  if (type === 'date' || type === 'timestamp') return `${type} ${text}`;
  if (type === 'bool' || type === 'int64') return String(value);
  if (type !== 'float64') return `cast(${typeof value === 'string' ? text : value} as ${type})`;
  if (!Number.isFinite(Number(value))) return `cast(${text} as float64)`;
  return /^-?\d+$/.test(String(value)) ? `${value}.0` : String(value);
}
