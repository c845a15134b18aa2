/** Types of the parts of parquetjs-lite that its backend uses; the package has no types. */
declare module 'parquetjs-lite' {
  export interface FieldDefinition {
    type: string;
    optional: boolean;
    compression: string;
    statistics: false;
  }

  class ParquetSchema {
    constructor(fields: Record<string, FieldDefinition>);
    readonly schema: Record<string, FieldDefinition>;
  }

  interface PageHeader {
    readonly compressed_page_size: number;
    readonly uncompressed_page_size: number;
    readonly data_page_header: { readonly encoding: number } | null;
    readonly data_page_header_v2: { readonly encoding: number } | null;
  }

  /** One column of a row group. `values` has only the rows with the highest definition level. */
  export interface ColumnChunkData {
    readonly values: readonly unknown[];
    readonly dlevels: readonly number[];
    readonly pageHeaders: readonly PageHeader[];
  }

  /** A column chunk in the library's footer. */
  type StoredChunk = object;

  interface FileMetaData {
    version: number;
    readonly row_groups: readonly { readonly columns: readonly StoredChunk[] }[];
  }

  export class ParquetEnvelopeReader {
    static openFile(path: string): Promise<ParquetEnvelopeReader>;
    readFooter(): Promise<FileMetaData>;
    readColumnChunk(schema: ParquetSchema, chunk: StoredChunk): Promise<ColumnChunkData>;
    close(): Promise<void>;
  }

  export class ParquetReader {
    constructor(metadata: FileMetaData, envelope: ParquetEnvelopeReader, options: { rawStatistics: boolean });
    readonly metadata: FileMetaData;
    getSchema(): ParquetSchema;
  }

  export class ParquetWriter {
    static openStream(
      schema: ParquetSchema,
      stream: { write(bytes: Uint8Array, done: () => void): void; end(done: () => void): void },
      options: { rowGroupSize: number; useDataPageV2: boolean; pageIndex: boolean },
    ): Promise<ParquetWriter>;
    appendRow(row: Record<string, unknown>): Promise<void>;
    close(): Promise<void>;
  }

  const library: {
    readonly ParquetSchema: typeof ParquetSchema;
    readonly ParquetEnvelopeReader: typeof ParquetEnvelopeReader;
    readonly ParquetReader: typeof ParquetReader;
    readonly ParquetWriter: typeof ParquetWriter;
  };
  export default library;
}
