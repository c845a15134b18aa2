import { concatKeys } from '../../engine/keys/arrow-keys.ts';
import {
  type KeyColumn,
  keyCount,
  type KeyType,
  takeKeys,
  UNKNOWN_KEY,
} from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import type { AttributeMatrix } from './attribute-matrix.ts';
import { type EncodedRows, keysOfType } from './attribute-rows.ts';
import { GrowingRows } from './encoding.ts';

/** Row `row` of F. */
export interface KeptRow {
  readonly matrix: AttributeMatrix;
  readonly row: number;
}

interface Part {
  readonly lookup: KeyLookup;
  readonly matrix: AttributeMatrix;
}

/**
 * Encoded attributes that a model was given, by id; the last ones of an id count. Immutable: rows that are
 * added are a part of their own, which is joined with parts of at most twice its rows, so that there are few parts.
 */
export class KeptRows {
  readonly #type: KeyType;
  readonly #parts: readonly Part[];

  /** `type`: of the model's ids. */
  constructor(type: KeyType, parts: readonly Part[] = []) {
    [this.#type, this.#parts] = [type, parts];
  }

  /** Throws DataError for an id that the type of the model's ids cannot hold. */
  with({ ids, matrix }: EncodedRows): KeptRows {
    const parts = [...this.#parts];
    let added: Part = { lookup: new KeyLookup(keysOfType(ids, this.#type)), matrix };
    while (parts.length > 0 && parts[parts.length - 1].matrix.rows <= 2 * added.matrix.rows)
      added = joined(parts.pop() as Part, added, this.#type);
    return new KeptRows(this.#type, [...parts, added]);
  }

  /** The attributes of each id. */
  of(ids: KeyColumn): (KeptRow | undefined)[] {
    const found = Array.from({ length: keyCount(ids) }, (): KeptRow | undefined => undefined);
    for (const { lookup, matrix } of this.#parts)
      lookup.positionsOf(ids).forEach((row, at) => {
        if (row !== UNKNOWN_KEY) found[at] = { matrix, row };
      });
    return found;
  }
}

/** The rows of both; those of `later` replace earlier ones. */
function joined(earlier: Part, later: Part, type: KeyType): Part {
  const replaced = later.lookup.positionsOf(earlier.lookup.keys);
  const kept = Uint32Array.from(replaced.keys()).filter((row) => replaced[row] === UNKNOWN_KEY);
  const rows = new GrowingRows();
  const add = ({ offsets, indices, values }: AttributeMatrix, row: number) => {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) rows.add(indices[k], values[k]);
    rows.endRow();
  };
  for (const row of kept) add(earlier.matrix, row);
  for (let row = 0; row < later.matrix.rows; row++) add(later.matrix, row);
  return {
    lookup: new KeyLookup(concatKeys(type, [takeKeys(earlier.lookup.keys, kept), later.lookup.keys])),
    matrix: rows.matrix(later.matrix.features),
  };
}
