import type { Field } from 'apache-arrow';
import { isUuid } from './value-texts.ts';

/** Keys of a field's metadata for types that Arrow's formats describe by another type. */
const [NAME, METADATA] = ['ARROW:extension:name', 'ARROW:extension:metadata'];
const UUID = 'arrow.uuid';

/** Arrow's canonical extension: 16 bytes that are a UUID, not a hash or the like. */
export function isUuidField({ type, metadata }: Pick<Field, 'type' | 'metadata'>): boolean {
  return isUuid(type) && metadata.get(NAME) === UUID;
}

export function uuidMetadata(): Map<string, string> {
  return new Map([
    [NAME, UUID],
    [METADATA, ''],
  ]);
}
