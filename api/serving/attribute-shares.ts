import { type Id, keysOfIds } from '../../engine/keys/find-id.ts';
import type { KeyType } from '../../engine/keys/key-column.ts';
import type { ModelAttributes } from '../../operators/attributes/cold-rows.ts';
import { featureOf } from '../../operators/attributes/encoding.ts';
import type { AttributeShare } from './served-model.ts';

/**
 * What each attribute of an item adds to a user's score by attributes alone, f_j x_uᵀB_j; the numbers of a
 * vector together. The largest absolute share is first. Undefined if the attributes of the item are not in
 * memory. `type`: of the items' ids. `user`: the user's row of the model.
 */
export function attributeShares(
  { kept, encoding, coefficients }: ModelAttributes,
  type: KeyType,
  item: Id,
  user: Float32Array,
): AttributeShare[] | undefined {
  const [found] = kept?.of(keysOfIds([item], type)) ?? [];
  if (found === undefined) return undefined;
  const { matrix, row } = found;
  const shares: { column: string; value: string; share: number }[] = [];
  // The first feature is the constant.
  for (let k = matrix.offsets[row] + 1; k < matrix.offsets[row + 1]; k++) {
    const [feature, number] = [matrix.indices[k], matrix.values[k]];
    const from = feature * coefficients.columns;
    let share = 0;
    for (let c = 0; c < coefficients.columns; c++) share += user[c] * coefficients.values[from + c];
    const { column, value } = featureOf(encoding, feature);
    const last = shares.at(-1);
    if (column.kind === 'vector' && last?.column === column.name) last.share += number * share;
    else
      shares.push({
        column: column.name,
        value:
          column.kind === 'vector'
            ? ''
            : column.kind === 'number' && feature === column.first
              ? String(Number((number * column.deviation + column.mean).toPrecision(6)))
              : value,
        share: number * share,
      });
  }
  return shares.sort((left, right) => Math.abs(right.share) - Math.abs(left.share));
}
