"""Vector store on FAISS for Portico: `portico_faiss.store.FaissVectorStore`.

Nothing is imported here, so that listing what is installed loads neither NumPy nor FAISS.
"""
