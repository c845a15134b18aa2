import { requireFields } from '../../api/serving/cold-rows.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import type { Id, Model } from '../../index.ts';
import { HttpError } from './http-error.ts';
import { readId } from './read-id.ts';

export type Side = 'user' | 'item';

/** A row of attributes as a request sends it. */
export type SentRow = Readonly<Record<string, unknown>>;

/** Most rows that requests add, and most characters of them, so that requests cannot fill the memory. */
const MOST_ROWS = 100_000;
const MOST_CHARACTERS = 64 * 2 ** 20;

interface KeptRow {
  readonly row: SentRow;
  /** Number of the row among all that were added. */
  readonly at: number;
  readonly characters: number;
}

/**
 * Rows that requests added to the served model. They are kept as they were sent, since a model that is loaded
 * later has other coefficients; a row that is sent again replaces the first one.
 */
export class AddedRows {
  readonly #rows: Readonly<Record<Side, Map<string, KeptRow>>> = { user: new Map(), item: new Map() };
  #characters = 0;
  #count = 0;

  /** Number of rows that were added, with those that were replaced. */
  get count(): number {
    return this.#count;
  }

  /** Keeps rows with their ids. Throws HttpError TOO_LARGE if there is no room, and keeps none then. */
  keep(side: Side, rows: readonly SentRow[], ids: readonly Id[]): void {
    const kept = this.#rows[side];
    const entries = rows.map((row, at) => [String(ids[at]), row, JSON.stringify(row).length] as const);
    let [more, characters] = [0, this.#characters];
    for (const [id, , length] of entries) {
      const before = kept.get(id);
      if (before === undefined) more++;
      characters += length - (before?.characters ?? 0);
    }
    if (this.#rows.user.size + this.#rows.item.size + more > MOST_ROWS || characters > MOST_CHARACTERS)
      throw new HttpError(
        'TOO_LARGE',
        `the server keeps at most ${MOST_ROWS.toLocaleString('en')} added items and users, and 64 MiB of them: ` +
          'give it more by --item-attributes, or train with them',
      );
    for (const [id, row, length] of entries) {
      // Moved to the end, where rows that are added later are.
      kept.delete(id);
      kept.set(id, { row, at: this.#count++, characters: length });
    }
    this.#characters = characters;
  }

  /** The rows of a side that were added after `count` others. */
  since(side: Side, count: number): SentRow[] {
    return [...this.#rows[side].values()].flatMap(({ row, at }) => (at >= count ? [row] : []));
  }
}

/**
 * The ids of rows. Throws UsageError for a model without attributes of the side, for a row without an id, and
 * for a field that is not an attribute.
 */
export function sentIds(model: Model, side: Side, rows: readonly SentRow[]): Id[] {
  const attributes = model.attributes?.[side];
  if (attributes === undefined)
    throw new UsageError(`the model has no attributes of ${side}s, so it takes no further ${side}s`);
  const { id } = attributes;
  return rows.map((row, at) => {
    requireFields(`${side} ${at + 1}`, row, attributes);
    if (!Object.hasOwn(row, id)) throw new UsageError(`${side} ${at + 1} has no field ${id}, its id`);
    return readId(row[id], `${id} of ${side} ${at + 1}`);
  });
}

/** The error of rows that do not fit, for the client that sent them. */
export function refusedRows(error: unknown, side: Side): unknown {
  if (!(error instanceof DataError)) return error;
  const { row, column } = error.details;
  const place = row === undefined ? '' : `, ${side} ${row + 1}`;
  return new HttpError('USAGE', `${error.summary}${place}${column === undefined ? '' : `, field ${column}`}`);
}
