"""Vector store on Milvus for Portico: `portico_milvus.store.MilvusVectorStore`.

Nothing is imported here, so that listing what is installed loads neither pymilvus nor what that stands on.
"""
