import parser, {
  type Expr,
  type ExprBinary,
  type ExprCall,
  type ExprCase,
  type ExprCast,
  type ExprRef,
  type ExprTernary,
} from 'pgsql-ast-parser';
import { UsageError } from '../../engine/errors.ts';
import {
  call,
  type Expression,
  literal,
  type Literal,
  MOST_LEVELS,
  tooDeep,
} from '../../engine/expressions/expression.ts';
import { functions } from '../../engine/expressions/functions/table.ts';
import {
  decimalType,
  isValueType,
  typeList,
  type ValueType,
  valueTypes,
} from '../../engine/expressions/types.ts';
import { nearest, spelled } from '../../engine/nearest.ts';

/**
 * Parses an expression in SQL: `rating >= 3.5 and ts < '2024-01-01'`. Names of columns are case-sensitive; "a
 * b" or `a b` quotes them. Throws UsageError that names what is wrong or not supported.
 */
export function parseExpression(text: string): Expression {
  let parsed: Expr;
  const rewritten = rewrite(text);
  try {
    parsed = parser.parse(rewritten.text, 'expr');
  } catch (error) {
    const found = (error as { token?: { text?: string } }).token?.text;
    const problem =
      found === undefined ? 'it ends too early, or a quote is open' : `unexpected ${unquoted(found)}`;
    throw new UsageError(`"${text}" is not an expression: ${problem}`, {
      advice: `Write it as in SQL's where: rating >= 3.5 and genre = 'Drama'`,
    });
  }
  return new Conversion(text, rewritten.lists).expression(parsed);
}

/** Removes the quotes that `rewrite` has put around names, for messages. */
function unquoted(text: string): string {
  return text.replaceAll(/"([A-Za-z_]\w*)"/g, '$1');
}

const operators: Readonly<Record<string, string>> = {
  AND: 'and',
  OR: 'or',
  LIKE: 'like',
  '~': 'rlike',
  '@>': '<=>',
  '||': 'concat',
  ...Object.fromEntries(
    ['=', '!=', '<', '<=', '>', '>=', '+', '-', '*', '/', '%'].map((name) => [name, name]),
  ),
};

const tests: Readonly<Record<string, string>> = {
  NOT: 'not',
  'IS NULL': 'isNull',
  'IS NOT NULL': 'isNotNull',
};

const typeNames: Readonly<Record<string, ValueType>> = {
  ...Object.fromEntries(valueTypes.map((type) => [type, type])),
  boolean: 'bool',
  tinyint: 'int8',
  smallint: 'int16',
  int: 'int32',
  integer: 'int32',
  bigint: 'int64',
  long: 'int64',
  float: 'float32',
  real: 'float32',
  double: 'float64',
  string: 'utf8',
  text: 'utf8',
  varchar: 'utf8',
};

/** Normalizes a function's name, so that startswith, starts_with and startsWith are the same. */
const plain = (name: string) => name.replaceAll('_', '').toLowerCase();

const functionNames: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.keys(functions).map((name) => [plain(name), name])),
  mod: '%',
  power: 'pow',
  ceiling: 'ceil',
  log: 'ln',
  substr: 'substring',
  ifnull: 'coalesce',
  nvl: 'coalesce',
  regexplike: 'rlike',
  len: 'length',
  jsonextractstring: 'jsonText',
  getjsonobject: 'jsonText',
  stringsplit: 'split',
  listextract: 'elementAt',
  size: 'listLength',
  arraylength: 'listLength',
  structextract: 'field',
};

class Conversion {
  readonly #text: string;
  readonly #lists: Rewritten['lists'];
  #level = 0;

  constructor(text: string, lists: Rewritten['lists']) {
    [this.#text, this.#lists] = [text, lists];
  }

  expression(node: Expr): Expression {
    if (this.#level === MOST_LEVELS) throw tooDeep();
    this.#level++;
    const converted = this.#converted(node);
    this.#level--;
    return converted;
  }

  #converted(node: Expr): Expression {
    switch (node.type) {
      case 'ref':
        return this.#column(node);
      case 'integer':
        return literal(BigInt(node.value));
      case 'numeric':
        return { kind: 'literal', type: 'float64', value: node.value };
      case 'string':
      case 'boolean':
        return literal(node.value);
      case 'null':
        return literal(null);
      case 'binary':
        return this.#binary(node);
      case 'ternary':
        return this.#between(node);
      case 'call':
        return this.#call(node);
      default:
        return this.#form(node);
    }
  }

  #column(node: ExprRef): Expression {
    if (node.name === '*') throw this.#unsupported(node);
    return { kind: 'column', name: nameOf(node.name) };
  }

  #between(node: ExprTernary): Expression {
    const value = this.expression(node.value);
    const [low, high] = [this.expression(node.lo), this.expression(node.hi)];
    const range = call('and', call('>=', value, low), call('<=', value, high));
    return node.op === 'BETWEEN' ? range : call('not', range);
  }

  /** Translates syntax with keywords: not, case, cast, between, ... */
  #form(node: Expr): Expression {
    if (node.type === 'unary') {
      const value = this.expression(node.operand);
      if (node.op === '-') return negated(value);
      if (node.op === '+') return value;
      if (Object.hasOwn(tests, node.op)) return call(tests[node.op], value);
    }
    if (node.type === 'case') return this.#when(node);
    if (node.type === 'cast') return this.#cast(node, 'error');
    throw this.#unsupported(node);
  }

  #when({ value, whens, else: otherwise }: ExprCase): Expression {
    const branches = whens.map(({ when, value: result }) => ({
      when: value ? call('=', this.expression(value), this.expression(when)) : this.expression(when),
      value: this.expression(result),
    }));
    return { kind: 'when', branches, ...(otherwise ? { otherwise: this.expression(otherwise) } : {}) };
  }

  #cast(node: ExprCast, onError: 'error' | 'null'): Expression {
    const { operand, to } = node;
    if (!('name' in to)) throw this.#unsupported(node);
    if (to.name === NUMBER && operand.type === 'string') return numberOf(operand.value);
    const name = to.name.toLowerCase();
    const [digits = 18, scale = to.config === undefined ? 3 : 0] = to.config ?? [];
    const decimal = name === 'decimal' || name === 'numeric' ? decimalType({ digits, scale }) : undefined;
    if (isValueType(decimal)) return { kind: 'cast', value: this.expression(operand), to: decimal, onError };
    if (!Object.hasOwn(typeNames, name))
      throw new UsageError(`in the expression "${this.#text}", there is no type ${decimal ?? to.name}`, {
        advice: spelled(nearest(name, Object.keys(typeNames)), `The types are: ${typeList}`),
      });
    return { kind: 'cast', value: this.expression(operand), to: typeNames[name], onError };
  }

  /** A chain such as `a or b or c` is nested on the left, so that a loop descends it. */
  #binary(node: ExprBinary): Expression {
    const chain = [node];
    for (let { left } = node; left.type === 'binary'; { left } = left) chain.push(left);
    return chain.reduceRight<Expression>(
      (left, one) => this.#operation(left, one),
      this.expression(chain[chain.length - 1].left),
    );
  }

  #operation(left: Expression, node: ExprBinary): Expression {
    const op = node.op.replace(/^NOT /, '');
    let made: Expression;
    if (op === 'IN') {
      const list = node.right.type === 'list' ? node.right.expressions : [node.right];
      made = { kind: 'call', name: 'in', args: [left, ...list.flatMap((one) => this.#listed(one))] };
    } else if (isInterval(node.right) && (op === '+' || op === '-'))
      made = this.#added(left, node.right, op === '+' ? 1 : -1);
    else if (Object.hasOwn(operators, op)) made = call(operators[op], left, this.expression(node.right));
    else throw this.#unsupported(node);
    return op === node.op ? made : call('not', made);
  }

  /** A time and an interval of one unit: `ts + interval '3 days'`. */
  #added(time: Expression, interval: ExprCast, sign: 1 | -1): Expression {
    const text = interval.operand.type === 'string' ? interval.operand.value : '';
    const [, count, unit] = /^\s*([+-]?\d+)\s+([a-z]+?)s?\s*$/i.exec(text) ?? [];
    if (unit === undefined) throw this.#unsupported(interval, "Write a number and a unit: interval '3 days'");
    return call('dateAdd', time, literal(BigInt(sign) * BigInt(count)), literal(unit.toLowerCase()));
  }

  /** A member of a list, or all members of a list of constants that the parser has not seen. */
  #listed(node: Expr): Expression[] {
    if (node.type !== 'call' || node.function.name !== LIST) return [this.expression(node)];
    const [number] = node.args;
    const list = number?.type === 'integer' ? this.#lists[number.value] : undefined;
    if (list === undefined) throw this.#unsupported(node);
    return list.map(constantOf);
  }

  #call(node: ExprCall): Expression {
    const { name } = node.function;
    if (node.over || node.filter || node.distinct || node.orderBy) throw this.#unsupported(node);
    if (name === TRY || name === TIME) return this.#marked(node);
    const args = node.args.map((arg) => this.expression(arg));
    const key = plain(name);
    if (key === 'if' && args.length === 3)
      return { kind: 'when', branches: [{ when: args[0], value: args[1] }], otherwise: args[2] };
    if (key === 'datetrunc' && args.length > 1) return call('truncate', args[1], args[0], ...args.slice(2));
    return call(Object.hasOwn(functionNames, key) ? functionNames[key] : name, ...args);
  }

  /** A cast inside one of the marker functions of this file. */
  #marked({ function: { name }, args: [cast] }: ExprCall): Expression {
    if (cast.type !== 'cast') throw this.#unsupported(cast);
    const made = this.#cast(cast, name === TRY ? 'null' : 'error');
    const isTime = name === TIME && made.kind === 'cast' && made.value.kind === 'literal';
    return isTime ? { kind: 'literal', type: made.to, value: made.value.value } : made;
  }

  #unsupported(node: Expr, advice?: string): UsageError {
    const part = unquoted(parser.toSql.expr(node));
    return new UsageError(`in the expression "${this.#text}", ${part} is not supported`, { advice });
  }
}

function isInterval(node: Expr): node is ExprCast {
  return node.type === 'cast' && 'name' in node.to && node.to.name.toLowerCase() === 'interval';
}

/** A constant of a list, as the parser and this conversion would read it. */
function constantOf(token: string): Expression {
  if (token.startsWith("'")) return literal(token.slice(1, -1).replaceAll("''", "'"));
  if (token.startsWith('-')) return negated(constantOf(token.slice(1)));
  if (!isSafe(token)) return numberOf(token);
  return token.includes('.')
    ? { kind: 'literal', type: 'float64', value: Number(token) }
    : literal(BigInt(token));
}

function numberOf(text: string): Literal {
  if (/^\d+$/.test(text) && BigInt(text) < 2n ** 64n) return literal(BigInt(text));
  return { kind: 'literal', type: 'float64', value: Number(text) };
}

function negated(value: Expression): Expression {
  if (value.kind !== 'literal') return call('negate', value);
  if (value.type === 'int64' || value.type === 'uint64') return literal(-BigInt(String(value.value)));
  return value.type === 'float64' ? { ...value, value: -Number(value.value) } : call('negate', value);
}

/**
 * A number that the parser would round, or could not read, is rewritten as a cast of its text to this type,
 * which marks it.
 */
const NUMBER = 'number as written';

/**
 * Functions that `rewrite` puts around a cast to mark how it was written: as `try_cast`, or as a literal such
 * as `date '2024-01-01'`.
 */
const TRY = 'try_cast';
const TIME = 'time as written';

/** Stands for * in a quoted name, where the parser's lexer has none; no text has this character. */
const STAR = '\ufdd0';

/** A name as the parser gives it, as the user wrote it. */
function nameOf(parsed: string): string {
  return parsed.replaceAll('""', '"').replaceAll(STAR, '*');
}

const token =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[\p{L}_][\p{L}\p{N}_]*|<=>|./gsu;

const constant = /'(?:[^']|'')*'|-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;

/** A name, or several joined by points, such as `s.a`, which is the name of a column or of a struct's field. */
const path =
  /(?:"(?:[^"]|"")*"|`[^`]*`|[\p{L}_][\p{L}\p{N}_]*)(?:\.(?:"(?:[^"]|"")*"|`[^`]*`|[\p{L}_][\p{L}\p{N}_]*))+/uy;

const times = /\b(?:date|timestamp)\s*'(?:[^']|'')*'/iy;

const words = /^(and|or|not|in|is|null|true|false|like|between|case|when|then|else|end|cast|as|interval)$/i;

/** Name of a call that replaces a list of constants; its argument is the list's number. */
const LIST = 'constants as written';

/** Longer lists of constants are not parsed, since the parser takes a kilobyte and a millisecond for each. */
const SHORT_LIST = 16;

/** An expression that the parser can read, and its long lists of constants. */
interface Rewritten {
  readonly text: string;
  /** The tokens of the constants of each list: numbers, also with a minus, and texts in quotes. */
  readonly lists: readonly (readonly string[])[];
}

/**
 * Rewrites an expression so that the parser for PostgreSQL's language can read it. Quotes names, so that
 * they keep their case and may be keywords of PostgreSQL, such as user. Writes numbers of many digits as
 * casts. Replaces syntax that PostgreSQL does not have: `a b` in backticks, <=>, rlike and try_cast. Takes out
 * long lists of constants.
 */
function rewrite(text: string): Rewritten {
  const lists: (readonly string[])[] = [];
  let out = '';
  // The open parentheses. True for the parenthesis of try_cast, at whose end two must be closed.
  const open: boolean[] = [];
  for (let at = 0; at < text.length;) {
    times.lastIndex = at;
    token.lastIndex = at;
    const time = times.exec(text)?.[0];
    path.lastIndex = at;
    const names = path.exec(text)?.[0];
    const part = time ?? names ?? token.exec(text)?.[0] ?? '';
    at += part.length;
    const list = /^in$/i.test(part) ? constantsAt(text, at) : undefined;
    if (list !== undefined) {
      at = list.end;
      out += `in ("${LIST}"(${lists.push(list.constants) - 1}))`;
      continue;
    }
    if (part === '(') open.push(out.endsWith(`"${TRY}"(cast`));
    if (time !== undefined) out += `"${TIME}"(${time})`;
    else if (names !== undefined) out += quoted(joinedName(names));
    else out += part === ')' && open.pop() === true ? '))' : written(part);
  }
  return { text: out, lists };
}

/** The list `(1, -2, 'a')` at a place if it is long and has only constants. */
function constantsAt(
  text: string,
  start: number,
): { readonly constants: readonly string[]; readonly end: number } | undefined {
  const constants: string[] = [];
  const separated = /\s*([(,)])\s*/y;
  for (let at = start; ;) {
    separated.lastIndex = at;
    const separator = separated.exec(text)?.[1];
    if (separator === undefined || (separator === '(') !== (at === start)) return undefined;
    if (separator === ')') {
      const end = separated.lastIndex;
      return constants.length > SHORT_LIST ? { constants, end } : undefined;
    }
    constant.lastIndex = separated.lastIndex;
    const found = constant.exec(text)?.[0];
    if (found === undefined) return undefined;
    constants.push(found);
    at = constant.lastIndex;
  }
}

function joinedName(names: string): string {
  const each = names.matchAll(/"((?:[^"]|"")*)"|`([^`]*)`|([^.]+)/g);
  return Array.from(each, ([, a, b, c]) => a?.replaceAll('""', '"') ?? b ?? c).join('.');
}

function written(part: string): string {
  if (part.startsWith('`')) return quoted(part.slice(1, -1));
  if (part.startsWith('"')) return part.replaceAll('*', STAR);
  if (part === '<=>') return '@>';
  if (/^\.?\d/.test(part)) {
    return isSafe(part) ? part : `('${part}'::"${NUMBER}")`;
  }
  if (!/^[\p{L}_]/u.test(part) || words.test(part)) return part;
  if (/^try_cast$/i.test(part)) return `"${TRY}"(cast`;
  return /^(rlike|regexp)$/i.test(part) ? '~' : quoted(part);
}

/** True for a number that the parser reads exactly. */
function isSafe(number: string): boolean {
  return !/e/i.test(number) && (number.includes('.') || Number.isSafeInteger(Number(number)));
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""').replaceAll('*', STAR)}"`;
}
