import {
  factorsChecksum,
  type IndexHead,
  readIndex,
  type StoredIndex,
} from '../../connectors/model/item-index-file.ts';
import type { IndexHeader, IndexKind } from '../../connectors/model/index-layout.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { type IndexUse, missingIndex, probesOf, type UsedIndexes } from './index-use.ts';

/** The indexes of a model: built, or in files of its folder, which are read when they are first used. */
export class ItemIndexes implements UsedIndexes {
  readonly #factors: FactorModel;
  readonly #heads = new Map<IndexKind, IndexHeader>();
  readonly #files = new Map<IndexKind, string>();
  readonly #built = new Map<IndexKind, StoredIndex>();
  #checksum: Promise<number> | undefined;

  constructor(factors: FactorModel, heads: readonly IndexHead[] = []) {
    this.#factors = factors;
    for (const { file, header } of heads) {
      this.#heads.set(header.kind, header);
      this.#files.set(header.kind, file);
    }
  }

  head(kind: IndexKind): IndexHeader | undefined {
    return this.#heads.get(kind);
  }

  get kinds(): readonly IndexKind[] {
    return [...this.#heads.keys()];
  }

  /** CRC-32 of the item factors, which an index names. */
  checksum(): Promise<number> {
    return (this.#checksum ??= factorsChecksum(this.#factors.itemFactors));
  }

  set(index: StoredIndex): void {
    const { kind } = index.header;
    this.#heads.set(kind, index.header);
    this.#built.set(kind, index);
  }

  /**
   * The index of a kind. Searches copy it once, so an index in a file is not kept: each call reads it. Throws
   * DataError if the file is damaged, or of another model.
   */
  async stored(kind: IndexKind): Promise<StoredIndex> {
    const built = this.#built.get(kind);
    if (built !== undefined) return built;
    const file = this.#files.get(kind);
    if (file === undefined) throw missingIndex(kind);
    return readIndex(file, () => this.checksum());
  }

  /** The number of lists to search; undefined for an exact search. Throws UsageError without an index. */
  probes(kind: IndexKind, use: IndexUse = 'auto'): number | undefined {
    return probesOf(this.#heads.get(kind), kind, use, keyCount(this.#factors.items));
  }
}
