import { Field, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { check } from '../../engine/expressions/check.ts';
import { evaluateAll, resultType } from '../../engine/expressions/evaluate.ts';
import { columnsOf, type Expression } from '../../engine/expressions/expression.ts';
import { print } from '../../engine/expressions/print.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { columnAt, RowOperator, sameRows } from './row-operator.ts';

/** A column of the result. */
export interface NamedExpression {
  readonly name: string;
  readonly value: Expression;
}

/** Columns of the result, made from columns of the input. */
export type Projection =
  | { readonly kind: 'select'; readonly columns: readonly NamedExpression[] }
  /**
   * All columns of the input and the given ones. A given column replaces a column of the same name, else it
   * is added at the end. `areNew`: a column that has the name already is an error.
   */
  | { readonly kind: 'with'; readonly columns: readonly NamedExpression[]; readonly areNew?: boolean }
  | { readonly kind: 'drop'; readonly names: readonly string[] }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string };

/** Computes columns of each row from others. */
export class Project extends RowOperator {
  readonly name = 'project';
  readonly projection: Projection;

  constructor(projection: Projection) {
    super([projection]);
    this.projection = projection;
  }

  describe(): JsonObject {
    const { projection } = this;
    if (projection.kind === 'drop') return { drop: [...projection.names] };
    if (projection.kind === 'rename') return { rename: `${projection.from} to ${projection.to}` };
    const { kind, columns } = projection;
    return {
      [kind]: columns.map(({ name, value }) => {
        const text = print(value);
        return value.kind === 'column' && value.name === name ? text : `${text} as ${name}`;
      }),
    };
  }

  passesNeeds({ numbers }: ValueNeeds): boolean {
    const { projection } = this;
    if (projection.kind === 'drop') return true;
    if (projection.kind === 'rename')
      return !numbers.includes(projection.from) && !numbers.includes(projection.to);
    // A value that cannot be read may arrive as null only in a column that passes through unchanged. If the
    // column is computed or used in a computation, the source must report the bad value as an error.
    return !projection.columns.some(
      ({ name, value }) =>
        !(value.kind === 'column' && value.name === name) &&
        [name, ...columnsOf(value)].some((column) => numbers.includes(column)),
    );
  }

  /** Columns of the result for an input. Throws UsageError that names a column that does not exist. */
  columns(input: Schema): readonly NamedExpression[] {
    const { projection } = this;
    const names = input.fields.map((field) => field.name);
    const same = (name: string): NamedExpression => ({ name, value: { kind: 'column', name } });
    switch (projection.kind) {
      case 'select':
        return projection.columns;
      case 'with': {
        const added = new Map(projection.columns.map((column) => [column.name, column]));
        const known = new Set(names);
        const taken = projection.areNew && projection.columns.find(({ name }) => known.has(name));
        if (taken)
          throw new UsageError(
            `the plan needs a column "${taken.name}" for itself, and there is one already`,
            {
              advice: `Rename it: withColumnRenamed('${taken.name}', 'other')`,
            },
          );
        const kept = names.map((name) => added.get(name) ?? same(name));
        return [...kept, ...projection.columns.filter(({ name }) => !known.has(name))];
      }
      case 'drop':
        for (const name of projection.names) columnAt(name, names, 'to drop');
        return names.filter((name) => !projection.names.includes(name)).map(same);
      default: {
        const { from, to } = projection;
        columnAt(from, names, 'to rename');
        return names.map((name) => (name === from ? { ...same(name), name: to } : same(name)));
      }
    }
  }

  override outputSchema(input: Schema): Schema {
    const columns = this.columns(input);
    const names = new Set<string>();
    const twice = columns.find(({ name }) => names.size === names.add(name).size)?.name;
    if (twice !== undefined) throw new UsageError(`the result would have the column "${twice}" twice`);
    return new Schema(
      columns.map(({ name, value }) => {
        const checked = check(value, input);
        const { nullable = true, metadata } =
          checked.kind === 'column' ? input.fields[checked.index] : { metadata: undefined };
        return new Field(name, resultType(checked, input), nullable, metadata);
      }),
    );
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    const { projection } = this;
    // These columns are required even if nothing uses them, so that a name that does not exist is an error in
    // an optimized plan, too.
    if (projection.kind === 'drop') return wanted && [...new Set([...wanted, ...projection.names])];
    if (projection.kind === 'rename') {
      const { from, to } = projection;
      return wanted && [...new Set([...wanted.filter((name) => name !== to), from])];
    }
    // All of this projection's own columns are computed; the rule pruneColumns removes unused ones.
    const { kind, columns } = projection;
    const used = columns.flatMap(({ value }) => columnsOf(value));
    if (kind === 'select') return [...new Set(used)];
    const names = new Set(columns.map(({ name }) => name));
    const others = wanted?.filter((name) => !names.has(name));
    return others && [...new Set([...others, ...used])];
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    const columns = this.columns(input.schema).map(({ value }) => check(value, input.schema));
    for await (const batch of input) {
      const children = evaluateAll(columns, batch);
      yield sameRows(batch, schema, children);
    }
  }
}

/** A projection to some columns of the input. */
export function selectColumns(names: readonly string[]): Project {
  const columns = names.map((name) => ({ name, value: { kind: 'column', name } }) as const);
  return new Project({ kind: 'select', columns });
}
