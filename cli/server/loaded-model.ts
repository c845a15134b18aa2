import { HttpError } from './http-error.ts';
import type { Exclusions, Id, ItemFilters, ItemNames, Model } from '../../index.ts';
import type { IndexUse } from '../../api/serving/index-use.ts';
import { jsonId } from '../report/recommendations.ts';

/** A model that is loaded and prepared, with the data that belong to it. */
export interface LoadedModel {
  readonly model: Model;
  /** The JavaScript types of its ids. */
  readonly forms: Model['idForms'];
  /** Short name of the stored model, for logs and answers. */
  readonly version: string;
  /** The use of the model's index, by the flag --index. */
  readonly index: IndexUse;
  /** Pairs that are not recommended, by the flag --exclude. */
  readonly exclude?: Exclusions | undefined;
  readonly names?: ItemNames | undefined;
  /** Attributes of items, by the flag --items. */
  readonly filters?: ItemFilters | undefined;
  readonly loadedAt: Date;
}

/** Throws HttpError 404 unless the model knows the id. */
export function requireKnown({ model }: LoadedModel, side: 'user' | 'item', id: Id): void {
  const known = side === 'user' ? model.hasUser(id) : model.hasItem(id);
  if (!known) throw new HttpError('NOT_FOUND', `the model has no ${side} ${shortId(id)}`);
}

/** The ids of a side in the form for JSON: numbers where all are safe integers, else texts. */
export function idsForJson({ forms }: LoadedModel, side: 'user' | 'item'): (id: Id) => number | string {
  const form = forms[side];
  return (id) => (typeof id === 'number' && form === 'number' ? id : jsonId(id, form));
}

/** An id for a message. */
export function shortId(id: Id): string {
  const text = String(id);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}
