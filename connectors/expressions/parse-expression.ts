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
import { nearest, spelled } from '../../engine/nearest.ts';
import {
  call,
  type Expression,
  literal,
  type Literal,
  MOST_LEVELS,
  tooDeep,
} from '../../engine/expressions/expression.ts';
import { functions } from '../../engine/expressions/functions/table.ts';
import { type ValueType, valueTypes } from '../../engine/expressions/types.ts';
import { isSafe, LIST, nameOf, NUMBER, rewrite, type Rewritten, TIME, TRY } from './tokens.ts';

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
    if (node.table) throw this.#unsupported(node, 'Quote a name with a point: "a.b"');
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
    if (!Object.hasOwn(typeNames, name))
      throw new UsageError(`in the expression "${this.#text}", there is no type ${to.name}`, {
        advice: spelled(nearest(name, Object.keys(typeNames)), `The types are: ${valueTypes.join(', ')}`),
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
    } else if (Object.hasOwn(operators, op)) made = call(operators[op], left, this.expression(node.right));
    else throw this.#unsupported(node);
    return op === node.op ? made : call('not', made);
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
    if (key === 'datetrunc' && args.length === 2) return call('truncate', args[1], args[0]);
    return call(Object.hasOwn(functionNames, key) ? functionNames[key] : name, ...args);
  }

  /** A cast inside one of the marker functions of tokens.ts. */
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
