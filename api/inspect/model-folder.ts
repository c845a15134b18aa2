import { loadInThread } from '../../connectors/model/load-in-thread.ts';
import { checkModelDirectory, isModelFolder, readModelHead } from '../../connectors/model/model-store.ts';
import { idTypeOf } from '../../connectors/model/id-column.ts';
import type { JsonObject } from '../../engine/json.ts';
import { describeColumn, type EncodedColumn } from '../../operators/attributes/encoding.ts';
import { mapSides, type SidesWith } from '../model-parts.ts';
import { type ModelFacts, modelFacts } from './model-facts.ts';

export { checkModelDirectory, isModelFolder };

/** The facts of a model in a folder, and the bytes of its files. */
export interface InspectedModel extends ModelFacts {
  readonly bytes: number;
  /** FactorFlow's part of the metadata: parameters, iterations, warnings, plan; empty for models of Spark. */
  readonly metadata: JsonObject;
  /** The attributes of users and items that the model was trained with, a text for each column. */
  readonly attributes: SidesWith<readonly string[]>;
}

/**
 * Describes a model from its metadata. For a model of Spark the factors are loaded, since its metadata do not
 * contain the numbers of users and items. Throws DataError that names a missing or wrong file.
 */
export async function inspectModel(directory: string): Promise<InspectedModel> {
  const { metadata, storage, bytes } = await readModelHead(directory);
  const { rank: features, columns, coldStartStrategy, factorflow } = metadata;
  const ratingCol = typeof factorflow.ratingCol === 'string' ? factorflow.ratingCol : columns.rating;
  const counts =
    storage === undefined
      ? await countsOf(directory)
      : {
          users: storage.users,
          items: storage.items,
          idTypes: { user: storage.userIdType, item: storage.itemIdType },
        };
  return {
    ...modelFacts(
      { ...counts, features, coldStartStrategy, columns: { ...columns, rating: ratingCol } },
      factorflow,
    ),
    bytes,
    metadata: factorflow,
    attributes: mapSides(storage?.attributes ?? {}, ({ columns: own }) =>
      own.map((column) => describeColumn(column as unknown as EncodedColumn)),
    ),
  };
}

async function countsOf(directory: string) {
  const { userIds, itemIds } = await loadInThread(directory);
  const typeOf = (ids: typeof userIds) => idTypeOf(ids.type) ?? String(ids.type);
  return {
    users: userIds.length,
    items: itemIds.length,
    idTypes: { user: typeOf(userIds), item: typeOf(itemIds) },
  };
}
