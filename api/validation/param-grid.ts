import { shown } from '../../engine/shown.ts';
import { UsageError } from '../../engine/errors.ts';

/**
 * Every combination of the values of each parameter, the last parameter changing fastest:
 * paramGrid({ rank: [8, 16], regParam: [0.1, 0.2] }) gives (8, 0.1), (8, 0.2), (16, 0.1), (16, 0.2).
 * Throws UsageError for a parameter without values.
 */
export function paramGrid<const V extends Readonly<Record<string, readonly unknown[]>>>(
  values: V,
): { readonly [K in keyof V]: V[K][number] }[] {
  if (typeof values !== 'object' || values === null)
    throw new UsageError(`paramGrid takes lists of values by parameter, got ${shown(values)}`);
  let combinations: object[] = [{}];
  for (const [name, choices] of Object.entries(values)) {
    if (!Array.isArray(choices))
      throw new UsageError(`the grid's values of ${name} are a list such as [8, 16], got ${shown(choices)}`);
    if (choices.length === 0) throw new UsageError(`the grid has no value for ${name}`);
    combinations = combinations.flatMap((combination) =>
      choices.map((choice) => ({ ...combination, [name]: choice })),
    );
  }
  return combinations as { readonly [K in keyof V]: V[K][number] }[];
}
