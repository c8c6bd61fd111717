// An API with the hard cases of OpenAPI 3.0, for tests.

/** The document. A function, so that no test can change it for another. */
export function petStore(): Record<string, unknown> {
  return {
    openapi: "3.0.3",
    info: { title: "Pet store", version: "1.0.0" },
    servers: [{
      url: "https://{region}.pets.example/v{version}",
      variables: {
        region: { default: "eu", enum: ["eu", "us"] },
        version: { default: "2" },
      },
    }],
    security: [{ key: [] }],
    paths: {
      "/pets": {
        parameters: [{ $ref: "#/components/parameters/Trace" }],
        get: {
          operationId: "listPets",
          summary: "List pets",
          tags: ["pets", "read-model"],
          parameters: [
            {
              name: "filter",
              in: "query",
              style: "deepObject",
              explode: true,
              schema: {
                type: "object",
                properties: { status: { type: "string" }, age: { type: "integer" } },
              },
            },
            {
              name: "filter[id]",
              in: "query",
              schema: { type: "array", items: { type: "integer" } },
            },
            { name: "$top", in: "query", schema: { type: "integer", minimum: 1 } },
            {
              name: "sort",
              in: "query",
              explode: false,
              schema: { type: "array", items: { type: "string" } },
            },
            { name: "api_key", in: "query", schema: { type: "string" } },
            { name: "Authorization", in: "header", schema: { type: "string" } },
          ],
          responses: {
            "200": {
              description: "The pets.",
              content: {
                "application/json": {
                  schema: { type: "array", items: { $ref: "#/components/schemas/Pet" } },
                },
              },
            },
            default: { $ref: "#/components/responses/Problem" },
          },
        },
        post: {
          operationId: "createPet",
          description: "Adds a pet.",
          requestBody: {
            required: true,
            content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } },
          },
          responses: {
            "201": {
              description: "The pet.",
              content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } },
            },
          },
        },
      },
      "/pets/{petId}": {
        parameters: [
          {
            name: "petId",
            in: "path",
            required: true,
            description: "From the pet's side.",
            schema: { type: "string" },
          },
          { name: "verbose", in: "query", schema: { type: "boolean" } },
        ],
        get: {
          operationId: "pet",
          parameters: [
            {
              name: "petId",
              in: "path",
              required: true,
              description: "The pet.",
              schema: { type: "integer" },
            },
          ],
          responses: {
            "200": {
              description: "The pet.",
              content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } },
            },
          },
        },
        put: {
          operationId: "pet",
          requestBody: { $ref: "#/components/requestBodies/Pet" },
          responses: { "204": { description: "Done." } },
        },
        delete: {
          deprecated: true,
          responses: { "204": { description: "Gone." } },
        },
        patch: {
          operationId: "patchPet",
          requestBody: {
            required: true,
            content: {
              "application/merge-patch+json": {
                schema: {
                  type: "object",
                  properties: { petId: { type: "integer" }, name: { type: "string" } },
                },
              },
            },
          },
          responses: { "200": { description: "Text.", content: { "text/plain": {} } } },
        },
      },
      "/pets/{petId}/photo": {
        put: {
          operationId: "uploadPhoto",
          parameters: [{ name: "petId", in: "path", required: true, schema: { type: "integer" } }],
          requestBody: {
            content: { "image/png": { schema: { type: "string", format: "binary" } } },
          },
          responses: { "204": { description: "Done." } },
        },
      },
      "/login": {
        post: {
          operationId: "login",
          requestBody: {
            required: true,
            content: {
              "application/x-www-form-urlencoded": {
                schema: {
                  type: "object",
                  properties: {
                    user: { type: "string" },
                    scopes: { type: "array", items: { type: "string" } },
                    device: { type: "object", properties: { os: { type: "string" } } },
                  },
                  required: ["user"],
                },
              },
            },
          },
          responses: { "204": { description: "In." } },
        },
      },
      "/broken": {
        get: {
          operationId: "broken",
          responses: {
            "200": {
              description: "?",
              content: { "application/json": { schema: { type: "strng" } } },
            },
          },
        },
        post: {
          operationId: "outside",
          requestBody: { content: { "application/json": { schema: { $ref: "other.yaml#/Pet" } } } },
          responses: {},
        },
        trace: { operationId: "trace", responses: {} },
      },
    },
    components: {
      parameters: {
        Trace: { name: "X-Trace", in: "header", schema: { type: "string" } },
      },
      requestBodies: {
        Pet: {
          required: true,
          content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } },
        },
      },
      responses: {
        Problem: {
          description: "What went wrong.",
          content: { "application/json": { schema: { type: "object" } } },
        },
      },
      schemas: {
        Named: {
          type: "object",
          required: ["name"],
          properties: { name: { type: "string", minLength: 1 } },
        },
        Pet: {
          allOf: [
            { $ref: "#/components/schemas/Named" },
            {
              type: "object",
              required: ["id"],
              discriminator: { propertyName: "kind" },
              properties: {
                id: { type: "integer", readOnly: true },
                secret: { type: "string", writeOnly: true },
                kind: { type: "string", enum: ["cat", "dog"] },
                weight: {
                  type: "number",
                  minimum: 0,
                  exclusiveMinimum: true,
                  nullable: true,
                  example: 3.5,
                },
                children: { type: "array", items: { $ref: "#/components/schemas/Pet" } },
              },
            },
          ],
        },
      },
      securitySchemes: { key: { type: "apiKey", in: "query", name: "api_key" } },
    },
  };
}
