import { type Data, Field, Schema, Utf8, vectorFromArray } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import type { Id } from '../../engine/keys/find-id.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { plainValues } from '../../engine/values/plain-values.ts';
import { RowOperator, sameRows } from '../dataflow/row-operator.ts';
import { fieldOf } from '../ratings/rows/columns.ts';
import type { ItemNames } from './item-names.ts';

/**
 * Adds a column `name` after the column of items: utf8, null for an item without a name. The column is called
 * `itemName` if another one is called `name`.
 */
export class NameItems extends RowOperator {
  readonly name = 'name-items';
  readonly passesNeeds = true;
  readonly #names: ItemNames;
  readonly #item: string;

  constructor(names: ItemNames, item: string) {
    super();
    this.#names = names;
    this.#item = item;
  }

  describe(): JsonObject {
    return { item: this.#item, names: this.#names.size };
  }

  override outputSchema(input: Schema): Schema {
    fieldOf(input, this.#item);
    const added = new Field(nameColumn(input), new Utf8(), true);
    return new Schema(input.fields.flatMap((field) => (field.name === this.#item ? [field, added] : field)));
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    if (wanted === undefined) return undefined;
    const others = wanted.filter((name) => name !== 'name' && name !== 'itemName');
    return [...new Set([...others, this.#item])];
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    const at = input.schema.fields.findIndex(({ name }) => name === this.#item);
    for await (const batch of input) {
      const children = [...batch.data.children];
      children.splice(at + 1, 0, this.#namesOf(batch.data.children[at]));
      yield sameRows(batch, schema, children);
    }
  }

  #namesOf(items: Data): Data {
    const idAt = plainValues(items);
    const names = Array.from({ length: items.length }, (_, row) => this.#names.get(idAt(row) as Id) ?? null);
    return vectorFromArray(names, new Utf8()).data[0];
  }
}

function nameColumn({ fields }: Schema): string {
  return fields.some(({ name }) => name === 'name') ? 'itemName' : 'name';
}
