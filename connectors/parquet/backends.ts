import { UsageError } from '../../engine/errors.ts';
import { parquetBackendNames } from './backend.ts';
import type { ParquetBackend, ParquetBackendName } from './backend.ts';

/** The backend with a name, loaded at the first call. */
export async function parquetBackend(name: ParquetBackendName = 'parquet-wasm'): Promise<ParquetBackend> {
  switch (name) {
    case 'parquet-wasm':
      return (await import('./parquet-wasm/parquet-wasm-backend.ts')).parquetWasmBackend;
    case 'parquetjs-lite':
      return (await import('./parquetjs-lite/parquetjs-lite-backend.ts')).parquetjsLiteBackend;
    default:
      throw new UsageError(`unknown Parquet backend "${String(name)}"`, {
        advice: `Use one of: ${parquetBackendNames.join(', ')}`,
      });
  }
}
