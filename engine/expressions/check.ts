import { type DataType, DataType as Types, type Schema } from 'apache-arrow';
import { UsageError } from '../errors.ts';
import { shown } from '../format.ts';
import { nearest, spelled } from '../nearest.ts';
import { columnsText } from '../stream/stream.ts';
import { castMayFail, castValues, isCastable, textAt } from './cast.ts';
import {
  type Bound,
  type Call,
  call,
  type Cast,
  type Expression,
  type Literal,
  literal,
  type When,
} from './expression.ts';
import { type Argument, commonType, type FunctionSpec } from './functions/function.ts';
import { apply, functions } from './functions/table.ts';
import { print } from './print.ts';
import { isFloat, isTimestamp, isValueType, typeList, type ValueType, valueTypeOf } from './types.ts';
import { bools, nulls, type Values, numbersOf } from './values.ts';

/** An expression with resolved names and types: columns by position, all conversions explicit. */
export type Checked = {
  readonly type: ValueType;
  /** The Arrow type of values of type `other`. */
  readonly arrow?: DataType;
  readonly source: Expression;
  readonly mayFail: boolean;
} & (
  | { readonly kind: 'column'; readonly index: number; readonly name: string }
  | { readonly kind: 'constant'; readonly values: Values }
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly spec: FunctionSpec;
      readonly args: readonly Checked[];
    }
  | { readonly kind: 'cast'; readonly value: Checked; readonly onError: 'error' | 'null' }
  | { readonly kind: 'when'; readonly branches: readonly CheckedBranch[]; readonly otherwise: Checked }
);

interface CheckedBranch {
  readonly when: Checked;
  readonly value: Checked;
}

/** Resolves names and types against a schema, and computes constant parts; throws UsageError. */
export function check(expression: Expression, schema: Schema): Checked {
  return new Checker(expression, schema).check(expression);
}

/** Like `check`, for an expression that must be a condition (type bool). */
export function checkPredicate(expression: Expression, schema: Schema): Checked {
  const checked = check(expression, schema);
  if (checked.type === 'bool') return checked;
  if (checked.type === 'null')
    return { ...checked, kind: 'constant', type: 'bool', values: nulls('bool', 1, true) };
  throw new UsageError(
    `"${print(expression)}" must be true or false of a row, but its type is ${checked.type}`,
    { advice: 'Compare it with a value' },
  );
}

const indices = new WeakMap<Schema, ReadonlyMap<string, number>>();

/** The position of each column; of the first one, if several have a name. */
function indicesOf(schema: Schema): ReadonlyMap<string, number> {
  const known = indices.get(schema);
  if (known !== undefined) return known;
  const made = new Map(schema.fields.map(({ name }, i) => [name, i] as const).toReversed());
  indices.set(schema, made);
  return made;
}

/**
 * The field of a struct that a name such as `s.a` means, if no column has that name; `s` or `a` may have points,
 * too. Undefined if there is none.
 */
export function fieldOfStruct(name: string, schema: Schema): Expression | undefined {
  const indices = indicesOf(schema);
  if (indices.has(name)) return undefined;
  for (let end = name.indexOf('.'); end >= 0; end = name.indexOf('.', end + 1)) {
    const [column, rest] = [name.slice(0, end), name.slice(end + 1)];
    const index = indices.get(column);
    const type = index === undefined ? undefined : schema.fields[index].type;
    const path = type && pathIn(type, rest);
    if (path === undefined) continue;
    let value: Expression = { kind: 'column', name: column };
    for (const field of path) value = call('field', value, literal(field));
    return value;
  }
  return undefined;
}

/** The names of nested fields that joined by points are a name; undefined if there are none. */
function pathIn(type: DataType, name: string): readonly string[] | undefined {
  if (!Types.isStruct(type)) return undefined;
  for (const field of type.children) {
    if (field.name === name) return [name];
    const rest = name.startsWith(`${field.name}.`) && pathIn(field.type, name.slice(field.name.length + 1));
    if (rest) return [field.name, ...rest];
  }
  return undefined;
}

class Checker {
  readonly #whole: Expression;
  readonly #schema: Schema;

  constructor(whole: Expression, schema: Schema) {
    this.#whole = whole;
    this.#schema = schema;
  }

  check(source: Expression): Checked {
    switch (source.kind) {
      case 'column':
        return this.#column(source.name, source);
      case 'literal':
        return this.#literal(source);
      case 'call':
        return this.#call(source);
      case 'cast':
        return this.#cast(source);
      default:
        return this.#when(source);
    }
  }

  #column(name: string, source: Expression): Checked {
    if (typeof name !== 'string') throw this.#error(`the name of a column is a text, got ${shown(name)}`);
    const { fields } = this.#schema;
    const index = indicesOf(this.#schema).get(name);
    if (index !== undefined) {
      const type = valueTypeOf(fields[index].type);
      const arrow = type === 'other' ? { arrow: fields[index].type } : {};
      return { kind: 'column', type, ...arrow, source, index, name, mayFail: false };
    }
    const field = fieldOfStruct(name, this.#schema);
    if (field !== undefined) return this.check(field);
    const names = fields.map((field) => field.name);
    throw this.#error(
      `there is no column "${name}"`,
      spelled(nearest(name, names), `The columns are: ${columnsText(this.#schema)}`),
    );
  }

  #literal(source: Literal): Checked {
    const { type, value } = source;
    if (!isValueType(type)) throw this.#error(`there is no type ${type}`, `The types are: ${typeList}`);
    const one = (values: Values): Checked => ({ kind: 'constant', type, source, values, mayFail: false });
    if (value === null) return one(nulls(type, 1, true));
    if (typeof value === 'boolean')
      return one(this.#converted(bools(Uint8Array.of(value ? 1 : 0), { constant: true }), type, source));
    if (typeof value === 'number')
      return one(
        this.#converted(
          { form: 'number', type: 'float64', length: 1, constant: true, values: Float64Array.of(value) },
          type,
          source,
        ),
      );
    return one(
      this.#converted(
        { form: 'text', type: 'utf8', length: 1, constant: true, values: [value] },
        type,
        source,
      ),
    );
  }

  #converted(values: Values, type: ValueType, source: Expression): Values {
    if (!isCastable(values.type, type)) throw this.#error(`${print(source)} cannot be ${type}`);
    const { values: converted, failed } = castValues(values, type);
    if (failed?.[0] === 1 && values.valid?.[0] !== 0) throw this.#error(`${print(source)} is no ${type}`);
    return converted;
  }

  #call(source: Call): Checked {
    const { name } = source;
    if (!Object.hasOwn(functions, name)) {
      const names = Object.keys(functions).filter((one) => /^\w+$/.test(one));
      throw this.#error(
        `there is no function "${name}"`,
        spelled(nearest(name, names), `The functions are: ${names.join(', ')}`),
      );
    }
    const spec = functions[name];
    const given = source.args.map((arg) => this.check(arg));
    const signature = given.length === 0 ? undefined : spec.sign(given.map(argumentOf));
    if (signature === undefined) throw this.#refused(source, spec, given);
    const args = given.map((arg, i) => this.#as(arg, signature.args[i]));
    const { result: type, arrow } = signature;
    const made = { type, ...(arrow && { arrow }), source };
    const constants = args.flatMap((arg) => (arg.kind === 'constant' ? [arg.values] : []));
    if (constants.length === args.length) {
      const fail = (_: number, message: string) => {
        throw this.#error(message);
      };
      const values = apply(spec, made, constants, { length: 1, fail });
      return { kind: 'constant', ...made, values, mayFail: false };
    }
    const mayFail = (spec.mayFail === true && !isFloat(type)) || args.some((arg) => arg.mayFail);
    return { kind: 'call', name, ...made, spec, args, mayFail };
  }

  #refused(source: Call, { takes }: FunctionSpec, given: readonly Checked[]): UsageError {
    const types = given.map((part) => `${print(part.source)} is ${typeText(part)}`).join(', ');
    const usage = takes.startsWith('(') ? `${source.name}${takes}` : takes;
    const isTime = given.some(({ type }) => type === 'date' || isTimestamp(type));
    const text = given.find((part) => isTime && part.type === 'utf8' && isLiteral(part.source));
    return this.#error(
      `"${print(source)}" does not fit ${usage}: ${types || 'it has no arguments'}`,
      text && isComparison(source.name)
        ? `${print(text.source)} is no time: write '2024-01-31' or '2024-01-31 12:30:00'`
        : 'cast(x as type) converts a value',
    );
  }

  #as(value: Checked, type: ValueType): Checked {
    if (value.type === type) return value;
    const { source } = value;
    if (value.kind === 'constant')
      return { ...value, type, values: this.#converted(value.values, type, source) };
    const mayFail = value.mayFail || castMayFail(value.type, type);
    return { kind: 'cast', type, source, value, onError: 'error', mayFail };
  }

  #cast(source: Cast): Checked {
    const { onError } = source;
    if (!isValueType(source.to))
      throw this.#error(`there is no type ${source.to}`, `The types are: ${typeList}`);
    const value = this.check(source.value);
    // Times keep their zone.
    const to = source.to === 'timestamp' && isTimestamp(value.type) ? value.type : source.to;
    if (!isCastable(value.type, to)) {
      const hint = isTimestamp(to) ? 'timestampSeconds(x) makes timestamps of numbers' : undefined;
      throw this.#error(`${print(source.value)} is ${typeText(value)}, which cannot be cast to ${to}`, hint);
    }
    if (value.kind !== 'constant') {
      const mayFail = value.mayFail || (onError === 'error' && castMayFail(value.type, to));
      return { kind: 'cast', type: to, source, value, onError, mayFail };
    }
    const failed = castValues(value.values, to).failed?.[0] === 1;
    const values =
      failed && onError === 'null' ? nulls(to, 1, true) : this.#converted(value.values, to, source.value);
    return { kind: 'constant', type: to, source, values, mayFail: false };
  }

  #when(source: When): Checked {
    const conditions = source.branches.map(({ when }) => {
      const condition = this.check(when);
      if (condition.type === 'bool' || condition.type === 'null') return this.#as(condition, 'bool');
      throw this.#error(
        `the condition ${print(when)} must be true or false, but its type is ${condition.type}`,
      );
    });
    const results = [...source.branches.map(({ value }) => value), source.otherwise ?? nothing].map(
      (result) => this.check(result),
    );
    const type = commonType(results.map(argumentOf));
    if (type === undefined || type === 'other') {
      const types = results.map((result) => `${print(result.source)} is ${typeText(result)}`).join(', ');
      throw this.#error(`the results of "${print(source)}" have no common type: ${types}`);
    }
    const values = results.map((result) => this.#as(result, type));
    const branches = conditions.map((when, i) => ({ when, value: values[i] }));
    const mayFail = [...conditions, ...values].some((one) => one.mayFail);
    return { kind: 'when', type, source, branches, otherwise: values[branches.length], mayFail };
  }

  #error(message: string, advice?: string): UsageError {
    return new UsageError(`in the expression "${print(this.#whole)}", ${message}`, { advice });
  }
}

/** Lists, structs and others have the name of their Arrow type in errors. */
const typeText = ({ type, arrow }: Checked) => String(arrow ?? type);

const nothing: Literal = { kind: 'literal', type: 'null', value: null };

function argumentOf(checked: Checked): Argument {
  return {
    type: checked.type,
    ...(checked.arrow && { arrow: checked.arrow }),
    constant: checked.kind === 'constant' ? checked.values : undefined,
    isLiteral: isLiteral(checked.source),
  };
}

/** True for a written number or text, also with a sign: it takes the type of the value next to it. */
export function isLiteral(source: Expression): boolean {
  if (source.kind === 'call' && source.name === 'negate') return isLiteral(source.args[0]);
  return source.kind === 'literal' && ['int64', 'float64', 'utf8', 'null'].includes(source.type);
}

const mirrored = { '=': '=', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=', '<=>': '<=>' } as const;

/**
 * Returns those conditions of a predicate that concern a single column and must hold in every selected row.
 * All other conditions are left out.
 */
export function boundsOf(predicate: Checked): Bound[] {
  if (predicate.kind !== 'call') return [];
  const { name, args } = predicate;
  if (name === 'and') return args.flatMap(boundsOf);
  const [left, right] = args;
  if (name === 'isNull' || name === 'isNotNull')
    return left.kind === 'column' ? [{ column: left.name, operator: name, values: [] }] : [];
  const constants = args.flatMap((arg) => (arg.kind === 'constant' ? [literalOf(arg.values)] : []));
  if (name === 'in' && left.kind === 'column')
    return [{ column: left.name, operator: name, values: constants }];
  if (!isComparison(name) || constants.length !== 1) return [];
  if (left.kind === 'column') return [{ column: left.name, operator: name, values: constants }];
  return right.kind === 'column' ? [{ column: right.name, operator: mirrored[name], values: constants }] : [];
}

function isComparison(name: string): name is keyof typeof mirrored {
  return Object.hasOwn(mirrored, name);
}

function literalOf(values: Values): Literal {
  // Times of a zone are written in UTC.
  if (isTimestamp(values.type) && values.type !== 'timestamp')
    return literalOf({ ...values, type: 'timestamp' });
  const { type } = values;
  if (values.form === 'opaque' || values.valid?.[0] === 0) return { kind: 'literal', type, value: null };
  if (values.form === 'bool') return { kind: 'literal', type, value: values.values[0] === 1 };
  const number = numbersOf(values)[0];
  const isPlain =
    values.form === 'number' && !/^u?int64$|date|timestamp|decimal/.test(type) && Number.isFinite(number);
  return { kind: 'literal', type, value: isPlain ? number : textAt(values, 0) };
}
