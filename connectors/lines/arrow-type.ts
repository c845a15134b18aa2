import { Bool, Float32, Float64, Int32, Int64, Utf8 } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { textTypes } from './text-type.ts';
import type { TextType } from './text-type.ts';

/** The Arrow type of a type's name. Throws UsageError for an unknown name. */
export function arrowType(type: TextType): Int32 | Int64 | Float32 | Float64 | Utf8 | Bool {
  switch (type) {
    case 'int32':
      return new Int32();
    case 'int64':
      return new Int64();
    case 'float32':
      return new Float32();
    case 'float64':
      return new Float64();
    case 'utf8':
      return new Utf8();
    case 'bool':
      return new Bool();
    default:
      throw new UsageError(`unknown column type "${String(type)}"`, {
        advice: `Use one of: ${textTypes.join(', ')}`,
      });
  }
}
