import { findId, fitsKeys, keysOfIds } from '../../engine/keys/find-id.ts';
import { type KeyColumn, keyCount, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import { constantRow, factorsBy, type ModelAttributes } from '../../operators/attributes/cold-rows.ts';
import type { KeptRow } from '../../operators/attributes/kept-rows.ts';
import { type FactorModel, lookupOf } from '../../operators/serving/factor-model.ts';
import { encodedRow } from './cold-rows.ts';
import type { DescribedUser, UserPrior, UserPriors } from './served-model.ts';

/**
 * What the attributes of a model's side predict of rows that are solved from ratings. For users the side is
 * `users`; a model with its sides swapped gives the same for items.
 */
export class ModelPriors implements UserPriors {
  readonly #attributes: ModelAttributes;
  readonly #model: FactorModel;
  /** Number of ratings of each user. */
  readonly #counts: Uint32Array | undefined;

  constructor(attributes: ModelAttributes, model: FactorModel, counts: Uint32Array | undefined) {
    [this.#attributes, this.#model, this.#counts] = [attributes, model, counts];
  }

  of({ user, attributes }: DescribedUser): UserPrior {
    const { users } = this.#model;
    if (attributes !== undefined) {
      const matrix = encodedRow('attributes', attributes, this.#attributes);
      return this.#prior({ matrix, row: 0 }, UNKNOWN_KEY);
    }
    if (user === undefined || !fitsKeys(users.type, user)) return this.#prior(undefined, UNKNOWN_KEY);
    const [kept] = this.#attributes.kept?.of(keysOfIds([user], users.type)) ?? [];
    const position = findId(users, user);
    return this.#prior(kept, position < 0 ? UNKNOWN_KEY : position);
  }

  /** The rows of several users, one after the other. */
  ofUsers(ids: KeyColumn): Float32Array {
    const { users, rank } = this.#model;
    const count = keyCount(ids);
    const rows = sharedArray(Float32Array, count * rank);
    const isComparable = (ids.type === 'utf8') === (users.type === 'utf8');
    const kept = isComparable ? this.#attributes.kept?.of(ids) : undefined;
    const hasCold = isComparable && this.#counts?.includes(0) === true;
    const positions = hasCold ? lookupOf(users).positionsOf(ids) : undefined;
    for (let at = 0; at < count; at++)
      rows.set(this.#prior(kept?.[at], positions?.[at] ?? UNKNOWN_KEY).row, at * rank);
    return rows;
  }

  /** By attributes; else the row of a user without ratings; else what is predicted without attributes. */
  #prior(kept: KeptRow | undefined, position: number): UserPrior {
    const { rank, userFactors } = this.#model;
    const { coefficients } = this.#attributes;
    if (kept !== undefined) {
      const { matrix, row } = kept;
      const own = new Float32Array(rank);
      factorsBy(coefficients.values, rank)(matrix, row, own, 0);
      return { row: own, isOwn: matrix.offsets[row + 1] - matrix.offsets[row] > 1 };
    }
    if (position !== UNKNOWN_KEY && this.#counts?.[position] === 0)
      return { row: userFactors.subarray(position * rank, (position + 1) * rank), isOwn: true };
    return { row: constantRow(coefficients), isOwn: false };
  }
}
