import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { isId, type Id } from '../../engine/keys/find-id.ts';

/** Counts of names that match the items of a model. */
export interface NameMatch {
  /** Number of items in the model. */
  readonly items: number;
  /** Number of items in the model that have a name. */
  readonly named: number;
  /** Number of ids with a name that are not in the model. */
  readonly unknown: number;
}

/** An item with its name and, if known, its genres; "Drama|War" and "Drama, War" are both two genres. */
export type ItemNameEntry = readonly [
  id: Id,
  name: string | null | undefined,
  genres?: string | null | undefined,
];

/** Names of items by id, for display. If an item has several names or genres, the first counts. */
export class ItemNames {
  readonly #names = new Map<string, string | undefined>();
  readonly #genres = new Map<string, string>();
  /** Ids such as 0068646, whole numbers with leading zeros, under their digits without these zeros. */
  readonly #padded = new Map<string, string>();
  /** Number of entries that repeat the id of an earlier entry. */
  readonly duplicates: number;
  /** Number of ids whose name is null, undefined or blank. */
  readonly unnamed: number;

  /** Ids are texts, whole numbers or bigints; 5, 5n and '5' are the same id. */
  constructor(entries: Iterable<ItemNameEntry>) {
    const isList = typeof (entries as Partial<Iterable<ItemNameEntry>> | null | undefined)?.[Symbol.iterator];
    if (isList !== 'function' || typeof entries === 'string')
      throw new UsageError(`ItemNames takes pairs of id and name, got ${shown(entries)}`, {
        advice: "For example [[1, 'Metropolis']]",
      });
    let duplicates = 0;
    for (const entry of entries) {
      if (!Array.isArray(entry) || !isId(entry[0]))
        throw new UsageError(`an entry of ItemNames is a pair of id and name, got ${shown(entry)}`);
      const [id, name, genres] = entry as ItemNameEntry;
      const key = String(id);
      if (this.#names.has(key)) duplicates++;
      this.#names.set(key, this.#names.get(key) ?? (name?.trim() || undefined));
      const genre = firstGenre(genres);
      if (genre !== undefined && !this.#genres.has(key)) this.#genres.set(key, genre);
      if (/^0+\d/.test(key)) this.#padded.set(key.replace(/^0+(?=\d)/, ''), key);
    }
    this.duplicates = duplicates;
    this.unnamed = [...this.#names.values()].filter((name) => name === undefined).length;
  }

  /** Number of ids. */
  get size(): number {
    return this.#names.size;
  }

  /** Name of an item; undefined if it has none. A number also finds an id with leading zeros. */
  get(id: Id): string | undefined {
    return this.#names.get(this.#keyOf(id));
  }

  /** First genre of an item; undefined if it has none. */
  genre(id: Id): string | undefined {
    return this.#genres.get(this.#keyOf(id));
  }

  /** True for an id that was given, with or without a name. */
  has(id: Id): boolean {
    return this.#names.has(this.#keyOf(id));
  }

  /** The first id; undefined if there is none. */
  get firstId(): string | undefined {
    return this.#names.keys().next().value;
  }

  /** Compares the ids with the items of a model. */
  match(ids: Iterable<Id>): NameMatch {
    let [items, named, known] = [0, 0, 0];
    for (const id of ids) {
      items++;
      if (this.has(id)) known++;
      if (this.get(id) !== undefined) named++;
    }
    return { items, named, unknown: this.#names.size - known };
  }

  #keyOf(id: Id): string {
    const key = String(id);
    return typeof id === 'string' || this.#names.has(key) ? key : (this.#padded.get(key) ?? key);
  }
}

/** MovieLens' text for a film without a genre. */
const noGenres = '(no genres listed)';

function firstGenre(genres: string | null | undefined): string | undefined {
  const first = genres
    ?.split(/[|,]/)
    .map((genre) => genre.trim())
    .find((genre) => genre !== '');
  return first === noGenres ? undefined : first;
}
