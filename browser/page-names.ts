import { nameOf } from '../api/serving/item-name.ts';
import { findId, type Id } from '../engine/keys/find-id.ts';
import type { KeyColumn } from '../engine/keys/key-column.ts';
import type { ItemNames } from '../operators/serving/item-names.ts';
import { RemoteNames } from './names/remote-names.ts';

/** Names of items in memory, or on a web server. */
export interface PageNames {
  readonly names?: ItemNames | RemoteNames;
}

/** The options without names on a server, which are read for the found items alone, and these names. */
export function splitNames<Options extends PageNames>({
  names,
  ...options
}: Options): readonly [Omit<Options, 'names'> & { readonly names?: ItemNames }, RemoteNames | undefined] {
  return names instanceof RemoteNames
    ? [options, names]
    : [{ ...options, ...(names !== undefined && { names }) }, undefined];
}

/** Names on a server, which a request reads for some items of a model. */
export class NamesOfRequest {
  readonly #names: RemoteNames | undefined;
  readonly #items: KeyColumn;
  readonly #signal: AbortSignal | undefined;

  /** `items`: the ids of the model. Without names, rows are returned as they are. */
  constructor(names: RemoteNames | undefined, items: KeyColumn, signal: AbortSignal | undefined) {
    [this.#names, this.#items, this.#signal] = [names, items, signal];
  }

  /** The rows with the names that the file has for them. */
  async named<Row extends object>(rows: readonly Row[], idOf: (row: Row) => Id): Promise<readonly Row[]> {
    if (this.#names === undefined) return rows;
    const found = await this.#names.names(rows.map(idOf), (id) => findId(this.#items, id), this.#signal);
    return rows.map((row) => ({ ...row, ...nameOf(found, idOf(row)) }));
  }

  /** Lists with the names of their rows, which are read for all lists together. */
  async namedLists<
    Name extends string,
    Row extends object,
    List extends Readonly<Record<Name, readonly Row[]>>,
  >(lists: List[], field: Name, idOf: (row: Row) => Id): Promise<List[]> {
    if (this.#names === undefined) return lists;
    const rows = await this.named(
      lists.flatMap((list) => list[field]),
      idOf,
    );
    let next = 0;
    return lists.map((list) => ({ ...list, [field]: rows.slice(next, (next += list[field].length)) }));
  }
}
