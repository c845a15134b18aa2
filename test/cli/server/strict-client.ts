import { Ajv2020 } from 'ajv/dist/2020.js';

interface Schema {
  readonly [key: string]: unknown;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: 'path' | 'query';
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** The parts of a request; `lenient` sends them even if they are not as documented. */
interface Sent {
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly lenient?: boolean;
}

export interface Answered {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Functions by operationId, generated from an OpenAPI document. They throw for a request and for an answer
 * that is not exactly as the document says: a status that it does not name, a field too few or too many, or
 * a value of another type.
 */
export function strictClient(
  address: string,
  { paths, components }: OpenApiDocument,
): Readonly<Record<string, (sent?: Sent) => Promise<Answered>>> {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, formats: { 'date-time': true } });
  const check = (what: string, schema: Schema, value: unknown) => {
    const resolved = JSON.parse(
      JSON.stringify(closed(schema)).replaceAll(
        '{"$ref":"#/components/schemas/Error"}',
        JSON.stringify(closed(components.schemas.Error)),
      ),
    ) as Schema;
    if (!ajv.validate(resolved, value))
      throw new Error(`${what}: ${ajv.errorsText()}: ${JSON.stringify(value)}`);
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
  );
  return Object.fromEntries(
    operations.map(({ path, method, operationId, parameters = [], requestBody, responses }) => {
      const call = async ({ path: ids = {}, query = {}, body, lenient = false }: Sent = {}) => {
        const bodySchema = requestBody?.content?.['application/json'].schema;
        if (!lenient) {
          for (const { name, in: place, required = false, schema } of parameters) {
            const value = (place === 'path' ? ids : query)[name];
            if (required || value !== undefined) check(`${operationId}, ${name}`, schema, value);
          }
          if (bodySchema !== undefined) check(`${operationId}, body`, bodySchema, body);
        }
        const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name]));
        const search = new URLSearchParams(
          Object.entries(query).map(([name, value]) => [name, String(value)]),
        );
        const answer = await fetch(`${address}${filled}?${search}`, {
          method,
          ...(body !== undefined && {
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          }),
        });
        const text = await answer.text();
        const documented = responses[answer.status];
        if (documented === undefined) throw new Error(`${operationId}: the status ${answer.status}: ${text}`);
        const [type] = (answer.headers.get('content-type') ?? '').split(';');
        const content = documented.content?.[type];
        if (content === undefined) throw new Error(`${operationId}: ${answer.status} has the type ${type}`);
        const found: unknown = type === 'application/json' ? JSON.parse(text) : text;
        check(`${operationId}, ${answer.status}`, content.schema, found);
        return { status: answer.status, body: found };
      };
      return [operationId, call];
    }),
  );
}

/** A schema whose objects have no other properties than the named ones. */
function closed(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema), (_, value: unknown) =>
    typeof value === 'object' && value !== null && 'properties' in value
      ? { additionalProperties: false, ...value }
      : value,
  ) as Schema;
}
