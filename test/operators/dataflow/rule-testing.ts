/** A source and operators for tests of the optimizer's rules. */
import { Field, Float32, Float64, Int32, Schema, Utf8 } from 'apache-arrow';
import { parseExpression } from '../../../connectors/expressions/parse-expression.ts';
import { print } from '../../../engine/expressions/print.ts';
import type { Bound } from '../../../engine/expressions/expression.ts';
import type { Operator, Source } from '../../../engine/stream/operator.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { Filter } from '../../../operators/dataflow/filter.ts';
import { Project } from '../../../operators/dataflow/project.ts';

export const schema = new Schema([
  new Field('a', new Int32(), true),
  new Field('f', new Float32(), true),
  new Field('x', new Float64(), true),
  new Field('t', new Utf8(), true),
]);

export class Rows implements Source {
  readonly name = 'rows';
  readonly replayable = true;
  readonly bounds: readonly Bound[];
  constructor(bounds: readonly Bound[] = []) {
    this.bounds = bounds;
  }
  describe() {
    return {};
  }
  async schema() {
    return schema;
  }
  within(bounds: readonly Bound[]) {
    return new Rows(bounds);
  }
  async execute() {
    return batchStream(schema, (async function* () {})());
  }
}

export const filter = (text: string) => new Filter(parseExpression(text));
const named = (columns: Readonly<Record<string, string>>) =>
  Object.entries(columns).map(([name, text]) => ({ name, value: parseExpression(text) }));
export const select = (columns: Readonly<Record<string, string>>) =>
  new Project({ kind: 'select', columns: named(columns) });
export const computed = (columns: Readonly<Record<string, string>>) =>
  new Project({ kind: 'with', columns: named(columns) });

export const textOf = (operator: Operator) => {
  if (operator instanceof Filter) return `filter ${print(operator.predicate)}`;
  const facts = Object.entries(operator.describe()).map(([key, value]) => `${key} ${String(value)}`);
  return operator instanceof Project ? facts.join() : `${operator.name} ${facts.join()}`;
};
