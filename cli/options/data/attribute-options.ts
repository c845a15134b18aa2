import type { AttributesOptions } from '../../../api/attributes.ts';
import { attributeParams } from '../../../api/option-params.ts';
import type { RunOptions } from '../../../api/run-session.ts';
import type { Dataset, Model, Session } from '../../../index.ts';
import { flagOf, listOf, text } from '../kinds.ts';
import { grouped, refuseFlags, type Values } from '../option.ts';

const files = 'Parquet, CSV, TSV, NDJSON or Arrow';

const sideOptions = (things: string, id: string) => ({
  file: text(`attributes of ${things}, a row for each; those without ratings get factors, too: ${files}`),
  idCol: text('its column of ids', {
    defaultText: `the column of ${things} of the ratings, or ${id}, id and the like`,
  }),
  cols: listOf(
    'its columns that are attributes; with their kinds as genres:values,price:number ' +
      '(category, values, words, number or vector)',
    { defaultText: 'all but the ids, each of the kind that its type and values suggest' },
  ),
});

const [items, users] = [sideOptions('items', 'sku'), sideOptions('users', 'customer_id')];

/** Flags of attributes of items and users. */
export const attributeOptions = grouped('Attributes:', {
  itemAttributes: items.file,
  itemAttributesIdCol: items.idCol,
  itemAttributesCols: items.cols,
  userAttributes: users.file,
  userAttributesIdCol: users.idCol,
  userAttributesCols: users.cols,
  attributesMinCount: flagOf(attributeParams.minCount),
});

export type AttributeValues = Partial<Values<typeof attributeOptions>>;

const sides = ['item', 'user'] as const;

/** Files with the training's attributes of items and users, which a loaded model gets. */
export type AttributeFiles = Readonly<Partial<Record<'item' | 'user', string | undefined>>>;

/** The model with the rows of the files. */
export async function withAttributeFiles(
  stored: Model,
  files: AttributeFiles,
  options: RunOptions,
): Promise<Model> {
  let model = stored;
  for (const side of sides) {
    const file = files[side];
    if (file !== undefined) ({ model } = await model.extended(side, file, options));
  }
  return model;
}

/** Throws UsageError for a flag that has no effect. */
export function checkAttributeFlags(values: AttributeValues, given: ReadonlySet<string>): void {
  for (const side of sides)
    if (values[`${side}Attributes`] === undefined)
      refuseFlags(
        given,
        [`${side}AttributesIdCol`, `${side}AttributesCols`],
        `acts only with --${side}-attributes`,
        'Leave it out, or name the file',
      );
  if (sides.every((side) => values[`${side}Attributes`] === undefined))
    refuseFlags(
      given,
      ['attributesMinCount'],
      'acts only with --item-attributes or --user-attributes',
      'Leave it out',
    );
}

/** The attributes of the flags as options of a trainer. Ids are read as text if those of the ratings are text. */
export async function readAttributes(
  session: Session,
  ratings: Dataset,
  values: AttributeValues,
): Promise<AttributesOptions> {
  const { openAttributes } = await import('../../../api/attributes.ts');
  const options: { -readonly [Name in keyof AttributesOptions]: AttributesOptions[Name] } = {};
  for (const side of sides) {
    const path = values[`${side}Attributes`];
    if (path === undefined) continue;
    const id = values[`${side}AttributesIdCol`];
    const columns = values[`${side}AttributesCols`];
    options[`${side}Attributes`] = {
      ...(await openAttributes(session, path, { side, id, ratings })),
      ...(columns && { columns: columnsOf(columns) }),
      minCount: values.attributesMinCount,
    };
  }
  return options;
}

const kinds = ['category', 'values', 'words', 'number', 'vector'] as const;

/** genres:values -> { genres: 'values' }; a name with another ending is a name. */
function columnsOf(names: readonly string[]) {
  const parsed = names.map((name) => {
    const at = name.lastIndexOf(':');
    const kind = kinds.find((one) => one === name.slice(at + 1));
    return at > 0 && kind !== undefined ? ([name.slice(0, at), kind] as const) : ([name, undefined] as const);
  });
  return Object.fromEntries(parsed);
}
