import { startPhase } from '../../engine/events.ts';
import { keysFromData, keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import type { KeyColumn, KeyTable } from '../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import type { Sink } from '../../engine/stream/operator.ts';

/** Quantiles of the number of ratings per user or item. */
export interface DegreeProfile {
  readonly least: number;
  readonly median: number;
  readonly mean: number;
  readonly most: number;
  /** Users or items with exactly one rating. */
  readonly single: number;
}

/** A summary of ratings, and their distinct ids in the order of their first occurrence. */
export interface ProfiledRatings extends RatingsSummary {
  readonly ids: Readonly<Record<'users' | 'items', KeyColumn>>;
}

export interface RatingsSummary {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  readonly userDegrees: DegreeProfile;
  readonly itemDegrees: DegreeProfile;
  /** Statistics of the ratings, in float64; absent if the input has no ratings. */
  readonly rating?: {
    readonly least: number;
    readonly mean: number;
    readonly deviation: number;
    readonly most: number;
    /** True if all are whole numbers. */ readonly whole: boolean;
  };
}

/** Counts users, items and ratings without storing rows, for the planner and `inspect`. */
export function profileRatings(): Sink<ProfiledRatings> {
  return {
    name: 'profile-ratings',
    describe: () => ({}),
    requiredColumns: () => undefined,
    async consume(input, ctx) {
      const at = (name: string) => input.schema.fields.findIndex((field) => field.name === name);
      const sides = ['user', 'item'].map(
        (name) =>
          new SideCounter(makeKeyTable(keyTypeOf(input.schema.fields[at(name)].type, name)), at(name)),
      );
      let [ratings, sum, squares, least, most] = [
        0,
        0,
        0,
        Number.POSITIVE_INFINITY,
        Number.NEGATIVE_INFINITY,
      ];
      let whole = true;
      const phase = startPhase(ctx.events, 'profile', 'ratings');
      for await (const batch of input) {
        for (const side of sides)
          side.count(keysFromData(batch.data.children[side.column], side.table.type), batch.numRows);
        const values =
          at('rating') < 0 ? undefined : (batch.data.children[at('rating')].values as Float32Array);
        for (const value of values?.subarray(0, batch.numRows) ?? []) {
          sum += value;
          squares += value * value;
          if (value < least) least = value;
          if (value > most) most = value;
          if (Math.trunc(value) !== value) whole = false;
        }
        ratings += batch.numRows;
        phase.progress(ratings);
      }
      phase.end(ratings);
      const [users, items] = sides;
      const mean = sum / ratings;
      const deviation = Math.sqrt(Math.max(0, squares / ratings - mean * mean));
      return {
        users: users.table.size,
        items: items.table.size,
        ratings,
        ids: { users: users.table.keys(), items: items.table.keys() },
        userDegrees: users.degrees(ratings),
        itemDegrees: items.degrees(ratings),
        ...(at('rating') < 0 || ratings === 0 ? {} : { rating: { least, mean, deviation, most, whole } }),
      };
    },
  };
}

class SideCounter {
  readonly table: KeyTable;
  readonly column: number;
  #counts = new Int32Array(1024);

  constructor(table: KeyTable, column: number) {
    this.table = table;
    this.column = column;
  }

  count(keys: Parameters<KeyTable['add']>[0], rows: number): void {
    const codes = new Uint32Array(rows);
    this.table.add(keys, codes);
    if (this.table.size > this.#counts.length) {
      const grown = new Int32Array(2 * this.table.size);
      grown.set(this.#counts);
      this.#counts = grown;
    }
    for (let i = 0; i < rows; i++) this.#counts[codes[i]]++;
  }

  degrees(ratings: number): DegreeProfile {
    const sorted = this.#counts.slice(0, this.table.size).sort();
    if (sorted.length === 0) return { least: 0, median: 0, mean: 0, most: 0, single: 0 };
    return {
      least: sorted[0],
      median: sorted[sorted.length >> 1],
      mean: ratings / sorted.length,
      most: sorted[sorted.length - 1],
      single: sorted.lastIndexOf(1) + 1,
    };
  }
}
