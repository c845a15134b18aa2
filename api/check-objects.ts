import { UsageError } from '../engine/errors.ts';
import type { Operator, Sink, Source } from '../engine/stream/operator.ts';
import { shown } from '../engine/shown.ts';

/**
 * Throws UsageError unless a value has all methods of an interface. `what` begins the message, such as "pipe
 * takes an operator".
 */
function requireMethods(value: unknown, methods: readonly string[], what: string): void {
  const has = (name: string) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function';
  if (typeof value === 'object' && value !== null && methods.every(has)) return;
  throw new UsageError(`${what}, got ${shown(value)}`, {
    advice: `It has the methods ${methods.join(', ')}`,
  });
}

export function requireOperator(value: unknown): asserts value is Operator {
  requireMethods(value, ['outputSchema', 'requiredColumns', 'execute'], 'pipe takes an operator');
}

export function requireSink(value: unknown): asserts value is Sink<unknown> {
  requireMethods(value, ['requiredColumns', 'consume'], 'runInto takes a sink');
}

export function requireSource(value: unknown): asserts value is Source {
  requireMethods(value, ['schema', 'execute'], 'session.source takes a source');
}

/** Throws UsageError unless all are column names. */
export function requireNames(what: string, names: readonly unknown[]): void {
  const wrong = names.findIndex((name) => typeof name !== 'string');
  if (wrong >= 0) throw new UsageError(`${what} takes names of columns, got ${shown(names[wrong])}`);
}

/** Throws UsageError unless it is a plain object with a value for each column. */
export function requireByColumn(what: string, values: unknown, example: string): void {
  if (typeof values === 'object' && values !== null && !Array.isArray(values)) return;
  throw new UsageError(`${what} takes values by column such as ${example}, got ${shown(values)}`);
}

/** Throws UsageError unless it is a list of column names. */
export function requireList(what: string, names: unknown): void {
  if (!Array.isArray(names)) throw new UsageError(`${what} takes a list of names, got ${shown(names)}`);
  requireNames(what, names);
}
